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


def entry_of(found: Script, *, place: int = 0) -> ThreadEntry:
    """Return a thread's entry in the list of threads."""
    return ThreadEntry(bundle=found.bundle, id=found.thread, place=place)


def started(store: StoreBackend, number: int = 1, steps: int = 2) -> Script:
    """Start a thread and return its lines."""
    found = script(number, steps)
    store.threads.start(entry_of(found), found.sealed, ThreadNotes())
    return found
