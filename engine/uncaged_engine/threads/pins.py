"""Pinned threads: `prune` and `thread rm` keep them, as tests of their flow. The pin is an empty
file beside the journal (``ID.pinned``).
"""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.files import sync_directory
from uncaged_bundles.storage.store import Store

SUFFIX = ".pinned"


def pin_of(journal: Path, thread: ThreadId) -> Path:
    """Return the file that is there while a thread is pinned. journal: plain or archived."""
    return journal.parent / f"{thread}{SUFFIX}"


def set_pinned(store: Store, text: str, *, pinned: bool) -> ThreadId:
    """Pin a thread, or no longer; return its id.

    Raises:
        NotFoundError: there is no such thread, or it was removed meanwhile.
    """
    _, thread, journal = store.locate_thread(text)
    pin = pin_of(journal, thread)
    if pinned:
        pin.touch(mode=0o600)
    else:
        pin.unlink(missing_ok=True)
    sync_directory(pin.parent)
    if pinned and store.journal_of(thread) is None:
        pin.unlink(missing_ok=True)
        raise NotFoundError(f"thread {thread} was removed just now")
    return thread


def pinned_threads(store: Store) -> list[ThreadId]:
    """Return the pinned threads, the newest first."""
    return sorted(
        (
            ThreadId(name.removesuffix(SUFFIX))
            for _, names in store.list_logs()
            for name in names
            if name.endswith(SUFFIX)
        ),
        reverse=True,
    )
