"""Pins of a directory's threads: `prune` and `thread rm` keep a pinned one, as a test of its flow.
The pin is an empty file beside the journal (``ID.pinned``).
"""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import BundleHash, ThreadId, is_thread_id
from uncaged_bundles.storage.files import sync_directory
from uncaged_bundles.storage.store import Store

SUFFIX = ".pinned"


def pin_of(journal: Path, thread: ThreadId) -> Path:
    """Return the file that is there while a thread is pinned. journal: plain or archived."""
    return journal.parent / f"{thread}{SUFFIX}"


def set_pinned(store: Store, bundle: BundleHash, thread: ThreadId, *, pinned: bool) -> None:
    """Pin a thread, or no longer.

    Raises:
        NotFoundError: there is no such thread, or it was removed meanwhile.
    """
    pin = pin_of(store.data_path(bundle, thread), thread)
    if pinned and store.journal_of(thread) is None:
        raise NotFoundError(f"there is no thread {thread}")
    if pinned:
        pin.touch(mode=0o600)
    else:
        pin.unlink(missing_ok=True)
    sync_directory(pin.parent)
    if pinned and store.journal_of(thread) is None:
        pin.unlink(missing_ok=True)
        raise NotFoundError(f"thread {thread} was removed just now")


def pinned_threads(store: Store) -> list[tuple[BundleHash, ThreadId]]:
    """Return the pinned threads, in order of bundle and id."""
    return sorted(
        (bundle, ThreadId(thread))
        for bundle, names in store.list_logs()
        for name in names
        if is_thread_id(thread := name.removesuffix(SUFFIX)) and thread != name
    )
