"""Error that ended a bundle: its type, its trace, and the line of the bundle's source at which it
was raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from uncaged_bundles.records import dataclass

MAX_FRAMES = 40
"""More than a bundle's process writes; a journal from elsewhere may hold any number."""
PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]{1,9}) in (?P<function>[^:]+)(?:: .*)?")
"""A frame of a trace as the bundle's process writes it: ``FILE:LINE in FUNCTION: SOURCE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFailure:
    """trace: frames, the outermost first. line: the innermost one of the bundle's own file; None if
    no frame is in it.

    source: that line as it is in the store, "" if the bundle cannot be read. function: what it is
    in.
    """

    type: str
    message: str
    trace: tuple[str, ...]
    line: int | None
    function: str
    source: str

    def document(self) -> dict[str, object]:
        """Return the failure as JSON values."""
        return {
            "type": self.type,
            "message": self.message,
            "line": self.line,
            "function": self.function,
            "source": self.source,
            "trace": list(self.trace),
        }


def bundle_failure(
    end: Mapping[str, Any] | None, file: str, source: bytes | None
) -> BundleFailure | None:
    """Return why the bundle raised, from its thread's end record; None if it did not.

    Args:
        file: the bundle's file name, as a trace names it. source: its bytes, if they can be read.
    """
    error = end.get("error") if end is not None and end.get("end") == "failed" else None
    if not isinstance(error, Mapping) or not isinstance(error.get("type"), str):
        return None
    trace = tuple(line for line in str(error.get("trace", "")).splitlines() if line)[-MAX_FRAMES:]
    own = [
        found
        for frame in trace
        if (found := PLACE.fullmatch(frame)) is not None and found["file"] == file
    ]
    line = int(own[-1]["line"]) if own else None
    lines = source.decode("utf-8", "replace").splitlines() if source is not None else []
    return BundleFailure(
        type=error["type"],
        message=str(error.get("message", "")),
        trace=trace,
        line=line,
        function=own[-1]["function"] if own else "",
        source=lines[line - 1] if line is not None and 0 < line <= len(lines) else "",
    )
