"""Owners of a journal and of a conversation's file, as `LineOwner`. The file's lock keeps a second
owner out, so that no fence is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...journal import chain, copied
from ..chains import continued
from ..protocol import LineOwner, ThreadHead


class _OpenFile(Protocol):
    """What a journal's and a conversation's open file have in common."""

    def append(self, body: bytes, *, flush: bool = False) -> bytes: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class FileOwner(LineOwner):
    """Writer of one open, locked file of chained lines."""

    fence = 0

    def __init__(
        self,
        file: _OpenFile,
        subject: str,
        head: ThreadHead,
        *,
        ended: bool,
        journal: Path | None = None,
    ) -> None:
        """Args: ended: the last line is a journal's end. journal: its path; None if the file is no
        journal.
        """
        self._file = file
        self._subject = subject
        self._head = head
        self._ended = ended
        self._journal = journal

    @property
    def head(self) -> ThreadHead:
        return self._head

    def append(self, lines: Sequence[bytes]) -> ThreadHead:
        """See `LineOwner.append`; a crash may leave the first of several lines only."""
        head, ended = continued(self._subject, self._head, lines, ended=self._ended)
        if self._journal is not None:
            copied.mark(self._journal)
        for line in lines:
            self._file.append(line[: -chain.SEAL_BYTES])  # the file seals it anew, alike
        self._file.flush()
        if self._journal is not None and ended:
            copied.unmark(self._journal)
        self._head, self._ended = head, ended
        return head

    def close(self) -> None:
        self._file.close()
