"""Pages of the list of threads and numbers by status, whether an index or a database finds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass

from ..stores.endings import UNSUCCESSFUL
from .observe import ThreadSummary

_PLACE = re.compile(r"(-?\d{1,18})\.([0-9A-HJKMNP-TV-Z]{26})\.([0-9A-HJKMNP-TV-Z]{13})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlace:
    """A thread's place in the order of the list: by the place of its start in the order log, then
    by its id. hash: empty for a thread whose bundle is not known yet.
    """

    start: int
    thread: ThreadId
    hash: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the text that `str` gives.

        Raises:
            UsageError: it is none.
        """
        found = _PLACE.fullmatch(text)
        if found is None:
            raise UsageError(f"{text[:80]!r} is no place in a list of threads")
        return cls(start=int(found[1]), thread=ThreadId(found[2]), hash=found[3] or "")

    def __str__(self) -> str:
        return f"{self.start}.{self.thread}.{self.hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """Threads, those started last first. before: where the next page begins; None: nowhere."""

    threads: tuple[ThreadSummary, ...]
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCounts:
    """Numbers of threads by status, ``unsuccessful`` among them. unread: threads that are in no
    number, since their journals were not read yet.
    """

    statuses: Mapping[str, int]
    unread: int


def word(thread: ThreadSummary) -> str:
    """Return the status of a thread as lists show and count it."""
    return UNSUCCESSFUL if thread.success is False else thread.status
