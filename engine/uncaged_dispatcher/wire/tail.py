"""Records of a conversation as they reach its log, from any number on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError

from ..conversations.records import parse

READ_BYTES = 1 << 20
MAX_RECORDS = 200


class LogTail:
    """Position in a log. Its file only grows, but for a line without end, which is not read."""

    def __init__(self, path: Path, after: int | None) -> None:
        """Args: after: skip the records up to this number; None skips those that are there now."""
        self.after = after or 0
        self._path = path
        self._offset = 0 if after is not None else _end_of(path)

    def has_more(self) -> bool:
        """Whether the file is longer than what was read of it."""
        try:
            return os.stat(self._path).st_size > self._offset  # noqa: PTH116 - five times a second
        except FileNotFoundError:
            return True  # `read` says so

    def read(self) -> Sequence[dict[str, Any]]:
        """Return the next records, in order; none if there are no more at present.

        Raises:
            NotFoundError: the conversation was deleted. DamagedError: a line is no record.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(READ_BYTES)
                if len(data) == READ_BYTES and b"\n" not in data:
                    data += file.readline()
        except FileNotFoundError as exc:
            raise NotFoundError(f"conversation {self._path.stem} was deleted") from exc
        found: list[dict[str, Any]] = []
        position = 0
        while len(found) < MAX_RECORDS and (end := data.find(b"\n", position) + 1):
            try:
                record = parse(data[position:end])
            except ValueError as exc:
                raise DamagedError(
                    f"{self._path}, byte {self._offset + position}: {exc}; the file was left as it is"
                ) from exc
            position = end
            # the first line has no number
            if record.get("seq", 0) > self.after:
                found.append(record)
                self.after = record["seq"]
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
