"""Repair of the ends of journals: a damaged tail is cut and kept aside, lines that a failed flush
left in doubt are written again.

Both need the journal's lock, so only commands of a person do it; readers leave the file as it is.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store

from ..journal import archive, trouble
from ..journal.file import JournalFile
from ..journal.journal import JournalBusy


def settle(store: Store, path: Path, bundle: BundleHash, thread: ThreadId) -> bool:
    """Bring lines to disk that a failed flush left in doubt; return whether there were any.

    Raises:
        JournalBroken: the disk still refuses.
    """
    found = trouble.find(path)
    if found is None or found.on_disk is None:
        return False
    with suppress(JournalBusy):  # its new owner does it
        JournalFile.open(store, bundle, thread).close()
    return True


def cut(store: Store, path: Path, bundle: BundleHash, thread: ThreadId) -> Path | None:
    """Cut a damaged tail; return where it is kept now, or None: a worker owns the thread, or the
    damage is not a tail.

    An archived journal is unpacked for that and packed again.

    Raises:
        JournalBroken, StorageError: the disk has no room to keep the tail aside, or refuses;
            nothing is cut.
    """
    is_archived = archive.is_archived(path)
    plain = archive.restore(path) if is_archived else path
    # crash here: it is no longer archived, and otherwise as it was
    try:
        journal = JournalFile.open(store, bundle, thread)
    except (JournalBusy, DamagedError):
        return None
    try:
        if is_archived:
            archive.compress(plain)
        return journal.kept_aside
    finally:
        journal.close()
