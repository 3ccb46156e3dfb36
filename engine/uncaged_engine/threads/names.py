"""Look-up of thread ids by prefix, and of locked journals, in the index and the order log."""

from __future__ import annotations

import os

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.order import START
from uncaged_bundles.storage.store import ARCHIVED_SUFFIX, Store

from ..journal import archive, lock
from ..state import index


def locked_journals(store: Store) -> list[index.Place]:
    """Return the threads whose journals workers hold locked."""
    noted = index.noted(store)
    if noted is None:
        return _found(store)
    locked = [place for place in noted.taken_up if lock.is_live(store.data_path(*place))]
    index.release(
        store, [(place, noted.taken_up[place]) for place in noted.taken_up.keys() - set(locked)]
    )
    return locked


def newest_ids(store: Store, prefix: str, limit: int) -> list[ThreadId]:
    """Return the greatest thread ids that begin with *prefix*."""
    if not prefix.isascii():
        return []
    noted = index.noted(store)
    if noted is None:
        _found(store)
    listed = index.newest(store, prefix, lambda thread, hash: _is_there(store, thread, hash), limit)
    if listed is None:
        listed = [thread for _, thread, _ in store.find_journals() if thread.startswith(prefix)]
    elif noted is not None:
        listed += [
            thread
            for thread, hash in noted.names
            if thread.startswith(prefix) and _is_there(store, thread, hash)
        ]
    return sorted(set(listed), reverse=True)[:limit]


def ids_near(store: Store, ids: list[ThreadId]) -> list[str]:
    """Return *ids* with the ids before and after each of them in the order of all: enough to find
    their shortest unique prefixes.
    """
    noted = index.noted(store)
    if noted is None:
        return [*ids, *(thread for _, thread, _ in store.find_journals())]
    return [*ids, *(thread for thread, _ in noted.names), *index.neighbours(store, ids)]


def _found(store: Store) -> list[index.Place]:
    """Build the index anew; return the journals that are locked."""
    tail = store.noted_since(START)
    place = START if tail is None else tail.place  # before the locks
    journals: list[tuple[index.Place, index.Stamp | None]] = []
    locked: list[index.Place] = []
    for bundle, thread, path in store.find_journals():
        stamp = stamp_of_file(path)
        journals.append(((bundle, thread), stamp))
        if not path.endswith(archive.SUFFIX) and lock.is_live(path):
            locked.append((bundle, thread))
    started = {} if tail is None else tail.started
    index.found(store, place, started=started, journals=journals, locked=locked)
    return locked


def stamp_of_journal(plain: str) -> tuple[str, index.Stamp] | None:
    """Return the path of a journal, plain or packed, and its stamp; None if there is none."""
    # again: it may be unpacked meanwhile
    for path in (plain, f"{plain}{ARCHIVED_SUFFIX}", plain):
        if (stamp := stamp_of_file(path)) is not None:
            return path, stamp
    return None


def stamp_of_file(path: str) -> index.Stamp | None:
    """Return the stamp of a file; None if it is not there."""
    try:
        return index.stamp_of(os.stat(path))  # noqa: PTH116 - a Path costs ten times as much, for each of ten thousand
    except OSError:
        return None


def _is_there(store: Store, thread: ThreadId, hash: str) -> bool:
    if not hash:
        return store.journal_of(thread) is not None
    return store.holds(BundleHash(hash), thread)
