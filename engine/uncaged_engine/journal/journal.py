"""Protocol of a thread's journal, wherever its lines are kept, with the errors of all
implementations.

The owner holds the thread's lock until `close`. Lines for which `append` returned survive the
owner's death, lines for which `flush` returned survive a power cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from uncaged_bundles.errors import RefusedError, StorageError

from .blobs import Blobs
from .origin import ThreadOrigin
from .recover import History
from .trouble import Trouble


class JournalBroken(StorageError):
    """The storage refused a write or a flush; the thread can be resumed once it is repaired."""


class JournalBusy(RefusedError):
    """Another process holds the journal's lock."""


class Journal(Protocol):
    """An open, locked journal.

    on_flush: called after each flush that brought something to disk, with the durable size.
    on_flush_time: called with the seconds that a flush took; None if it is not measured.
    """

    on_flush: Callable[[int], None]
    on_flush_time: Callable[[float], None] | None

    @property
    def history(self) -> History:
        """Return what the journal held when it was opened."""

    @property
    def blobs(self) -> Blobs:
        """Return the store of contents that are too large for its lines."""

    @property
    def place(self) -> str:
        """Return where the journal is, for messages."""

    @property
    def flushed_bytes(self) -> int:
        """Return how many bytes of the lines are known to be durable."""

    def kept_bytes(self) -> int:
        """Return the size of the lines and of the blobs that they name, against a thread's limit of
        bytes.
        """

    def origin(self) -> ThreadOrigin | None:
        """Return how much of it another machine wrote; None for a thread of this machine.

        Raises:
            DamagedError: that is on record, and cannot be read.
        """

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        """Seal an open record, write it behind the last line, and return the sealed line.

        The line is a pure function of the lines before it and *body*: replay, forks and `verify`
        compare bytes, so every implementation writes the same ones.

        Args:
            flush: make it durable as well, with all that was appended before.
        Raises:
            JournalBusy: the journal was closed, or has ended (only a resume follows an end).
            JournalBroken: the storage refuses; so it does from now on, for this owner.
        """

    def flush(self) -> None:
        """Make everything durable that was appended so far; do nothing if it is already. Raises: as
        `append`.
        """

    def read(self, start: int = 0) -> bytes:
        """Return the lines from byte *start* on, unflushed ones included."""

    def reread(self) -> History:
        """Return what the journal holds now, unflushed lines included."""

    def note(self, why: str) -> Trouble:
        """Leave a note for later readers why its owner leaves the thread unfinished; a write or
        flush that failed before is the reason, if one did.
        """

    def close(self) -> None:
        """Release the lock. Idempotent."""
