"""Check of sealed lines against the chain that they continue, for all implementations of a
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from uncaged_bundles.errors import DamagedError

from ..journal import chain
from ..journal.journal import JournalBusy
from ..journal.lines import END, MAX_LINE_BYTES, RESUME
from .protocol import ThreadHead


@dataclass(slots=True)
class ChainCheck:
    """Reader of lines that keeps the place up to which the chain holds.

    subject: names the lines in messages ("thread 01J…"). digest: that of the last line, at first
    the chain's seed. lines, size_bytes: of what was read.
    """

    subject: str
    digest: bytes
    lines: int = 0
    size_bytes: int = 0

    def add(self, line: bytes) -> None:
        """Check the next line.

        Raises:
            DamagedError: it is too long, has a line break inside, or does not follow the last one.
        """
        digest = None
        if len(line) <= MAX_LINE_BYTES and line.find(b"\n") == len(line) - 1:
            digest = chain.check(self.digest, line)
        if digest is None:
            raise DamagedError(
                f"{self.subject}, line {self.lines}: it does not follow the chain of the lines before it; it was changed or damaged"
            )
        self.digest = digest
        self.lines += 1
        self.size_bytes += len(line)

    @property
    def head(self) -> ThreadHead:
        """Return the end of the lines that were checked."""
        return ThreadHead(lines=self.lines, size_bytes=self.size_bytes, digest=self.digest)

    def checked(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield *lines*, each after its check. Raises: as `add`."""
        for line in lines:
            self.add(line)
            yield line


def joined(check: ChainCheck, lines: Iterable[bytes]) -> bytes:
    """Return checked lines as the bytes of a file.

    Raises:
        DamagedError: a line does not follow the chain, or there is none.
    """
    data = b"".join(check.checked(lines))
    if not data:
        raise DamagedError(f"{check.subject} has no first line")
    return data


def continued(
    subject: str, head: ThreadHead, lines: Sequence[bytes], *, ended: bool
) -> tuple[ThreadHead, bool]:
    """Return the head after lines that an owner is to append, and whether the last one ends a
    journal.

    Args:
        subject: as in `ChainCheck`. ended: the line before them ends a journal.
    Raises:
        DamagedError: as `ChainCheck.add`. JournalBusy: a line after an end is no resume.
    """
    check = ChainCheck(subject, head.digest, lines=head.lines, size_bytes=head.size_bytes)
    for line in check.checked(lines):
        if ended and not line.startswith(RESUME):
            raise JournalBusy(f"{subject} has ended; only a resume follows")
        ended = line.startswith(END)
    return check.head, ended
