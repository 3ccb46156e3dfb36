"""The debug log of a thread: one line per remark, each call site with its own tag, so that a tag found in a log is found in the code."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .codec import encode

MAX_CONTENT = 4096


class InfoLog:
    """Appends to a thread's `.info.jsonl`. Losing a line of it loses nothing else, so its errors are ignored."""

    def __init__(self, path: Path, clock_ms: Callable[[], int]) -> None:
        self._path = path
        self._clock_ms = clock_ms

    def note(self, tag: str, content: str) -> None:
        """Args: tag: eight Crockford characters, one per call site."""
        line = encode({"tag": tag, "content": content[:MAX_CONTENT], "timestamp": self._clock_ms()})
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        with suppress(OSError):
            os.write(fd, line.encode("utf-8", "replace") + b"\n")
        os.close(fd)
