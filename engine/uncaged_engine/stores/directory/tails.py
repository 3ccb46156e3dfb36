"""Reader of a conversation's file as it grows (`LineTail`): whole lines, each once and in order."""

from __future__ import annotations

import os
from pathlib import Path

from uncaged_bundles.errors import NotFoundError

READ_BYTES = 1 << 20


class FileTail:
    """Position in a file. It only grows, but for a line without end, which is not read."""

    def __init__(self, path: Path, from_line: int | None) -> None:
        """Args: from_line: None skips the lines that are there now."""
        self._path = path
        self._skipped = from_line or 0
        self._offset = 0 if from_line is not None else _end_of(path)

    def has_more(self) -> bool:
        try:
            return os.stat(self._path).st_size > self._offset  # noqa: PTH116 - five times a second
        except FileNotFoundError:
            return True  # `read` says so

    def read(self, *, limit: int) -> list[bytes]:
        found: list[bytes] = []
        while lines := self._page(limit + self._skipped):
            found = lines[self._skipped :]
            self._skipped -= len(lines) - len(found)
            if found:
                break
        return found

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _page(self, limit: int) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(READ_BYTES)
                if len(data) == READ_BYTES and b"\n" not in data:
                    data += file.readline()
        except FileNotFoundError as exc:
            raise NotFoundError(f"conversation {self._path.stem} was deleted") from exc
        found: list[bytes] = []
        position = 0
        while len(found) < limit and (end := data.find(b"\n", position) + 1):
            found.append(data[position:end])
            position = end
        self._offset += position
        return found


def _end_of(path: Path) -> int:
    """Return the place behind the last whole line."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - READ_BYTES)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
                end = start
    except FileNotFoundError as exc:
        raise NotFoundError(f"no conversation {path.stem}") from exc
    return 0
