"""Cache of the records of a thread's finished steps, each read from the journal once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..journal import lines
from ..journal.journal import Journal
from ..state.observe import parse_records


class FinishedSteps:
    """Finished steps of a journal whose lock this process holds, so that only its end changes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._records: list[dict[str, Any]] = []
        self._known_bytes = 0
        self._origin = journal.origin()
        self._lock = threading.Lock()  # parts of one effect ask in parallel

    def records(self) -> Sequence[dict[str, Any]]:
        """Return all of them in order, unflushed ones included, sub-steps excluded."""
        with self._lock:
            # another thread may be writing: a line without its end is left for the next call
            data = self._journal.read(self._known_bytes)
            whole = data[: data.rfind(b"\n") + 1]
            steps = [line + b"\n" for line in whole.split(b"\n")[:-1] if is_finished_step(line)]
            found = parse_records(b"".join(steps), self._journal.blobs)
            origin = self._origin
            self._records += (
                found
                if origin is None
                else [origin.step(record, self._journal.history) for record in found]
            )
            self._known_bytes += len(whole)
            return tuple(self._records)


def is_finished_step(line: bytes) -> bool:
    """Tell whether a line is a step, and no sub-step."""
    return lines.shape_of(line)[0] == "step" and not lines.is_sub_step(line)
