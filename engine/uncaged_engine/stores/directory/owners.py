"""Owners of a journal and of a conversation's file, as `LineOwner`. The file's lock keeps a second
owner out, so that no fence is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from ...journal import chain
from ...journal.journal import JournalBusy
from ...journal.lines import END, RESUME
from ..chains import ChainCheck
from ..protocol import ThreadHead


class _OpenFile(Protocol):
    """What a journal's and a conversation's open file have in common."""

    def append(self, body: bytes, *, flush: bool = False) -> bytes: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class FileOwner:
    """Writer of one open, locked file of chained lines."""

    fence = 0

    def __init__(self, file: _OpenFile, subject: str, head: ThreadHead, *, ended: bool) -> None:
        """Args: ended: the last line is a journal's end."""
        self._file = file
        self._subject = subject
        self._head = head
        self._ended = ended

    @property
    def head(self) -> ThreadHead:
        return self._head

    def append(self, lines: Sequence[bytes]) -> ThreadHead:
        """See `LineOwner.append`; a crash may leave the first of several lines only."""
        check = self._checked(lines)
        for line in lines:
            self._file.append(line[: -chain.SEAL_BYTES])  # the file seals it anew, alike
        self._file.flush()
        self._head = head_of(check)
        return self._head

    def _checked(self, lines: Sequence[bytes]) -> ChainCheck:
        """Check all lines before the first is written."""
        check = ChainCheck(
            self._subject,
            self._head.digest,
            lines=self._head.lines,
            size_bytes=self._head.size_bytes,
        )
        ended = self._ended
        for line in lines:
            check.add(line)
            if ended and not line.startswith(RESUME):
                raise JournalBusy(f"{self._subject} has ended, and only a resume follows an end")
            ended = line.startswith(END)
        self._ended = ended
        return check

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


def head_of(check: ChainCheck) -> ThreadHead:
    """Return the end of the lines that were checked."""
    return ThreadHead(lines=check.lines, size_bytes=check.size_bytes, digest=check.digest)
