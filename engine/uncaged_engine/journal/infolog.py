"""Debug log of a thread: one line per remark, each call site with its own tag, so that a tag found
in a log is found in the code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .codec import encode

MAX_CONTENT = 4096
MAX_BYTES = 1 << 20
"""The log of a thread grows no further; its journal says what happened all the same."""


class InfoLog:
    """Appends to a thread's `.info.jsonl`. Losing a line of it loses nothing else, so its errors
    are ignored.
    """

    def __init__(self, path: Path, clock_ms: Callable[[], int]) -> None:
        self._path = path
        self._clock_ms = clock_ms

    def note(self, tag: str, content: str) -> None:
        """Append a remark. tag: eight Crockford characters, one per call site. content: without
        secrets; of a long one both ends are kept.
        """
        line = (
            encode({"tag": tag, "content": _cut(content), "timestamp": self._clock_ms()}).encode(
                "utf-8", "replace"
            )
            + b"\n"
        )
        # opened for each remark: there are few, and a thousand threads would hold a file each
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(fd).st_size + len(line) <= MAX_BYTES:
                    os.write(fd, line)
            finally:
                os.close(fd)


def _cut(content: str) -> str:
    half = MAX_CONTENT // 2
    return content if len(content) <= MAX_CONTENT else f"{content[:half]} … {content[-half:]}"
