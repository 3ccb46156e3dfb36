"""Threads of a few lines, for tests of stores."""

from __future__ import annotations

from uncaged_bundles.ids import BundleHash, bundle_hash
from uncaged_engine.services.stores import StoreBackend, ThreadEntry, ThreadNotes

from .bundles import source, thread_id
from .journals import Script

SOURCE = source("count", '\n    yield {"null": {"value": 1}}\n')
BUNDLE = bundle_hash(SOURCE)


def script(number: int = 1, steps: int = 2, bundle: BundleHash = BUNDLE) -> Script:
    """Return a thread with a start record and some intents and outcomes."""
    found = Script.begun(bundle, thread_id(number))
    for seq in range(1, steps + 1):
        found.intent(seq).step(seq)
    return found


def entry_of(
    found: Script, *, place: int = 0, by_thread: bool = False, archived: bool = False
) -> ThreadEntry:
    """Return a thread's entry in the list of threads."""
    return ThreadEntry(
        bundle=found.bundle, id=found.thread, place=place, by_thread=by_thread, archived=archived
    )


def started(
    store: StoreBackend,
    number: int = 1,
    steps: int = 2,
    *,
    place: int = 0,
    by_thread: bool = False,
    archived: bool = False,
) -> Script:
    """Start a thread and return its lines."""
    found = script(number, steps)
    entry = entry_of(found, place=place, by_thread=by_thread, archived=archived)
    store.threads.start(entry, found.sealed, ThreadNotes())
    return found
