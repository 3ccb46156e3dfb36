"""A store in a directory with everything that is copied, made without a worker."""

from __future__ import annotations

import os
from pathlib import Path

from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import chain, lines
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.protocol import ThreadEntry, ThreadNotes

from .bundles import source
from .journals import NOW_MS, Script

INFO = b'{"tag":"ABCDEFGH","content":"x","timestamp":1}\n'
ORIGIN = b'{"bytes": 1, "steps": 0, "importedMs": 1}\n'
DOCUMENTS = (
    "dispatcher/preferences.json",
    "proposals/a.json",
    "schedules/a.json",
    "selectors.json",
)
LONG, CHILD, PACKED, IMPORTED, REMOVED = (
    new_thread_id(NOW_MS, number.to_bytes(10)) for number in (5, 4, 3, 2, 1)
)
"""Threads: LONG has two thousand lines and a blob; CHILD was started by it; PACKED is archived;
IMPORTED has a note of its origin; of REMOVED only the marker is left.
"""
_MACHINE = (
    "config.yaml",
    "keys/model",
    "browser-pairings.json",
    "dispatcher/catalog.sqlite3",
    "notifications.jsonl",
)


def filled(root: Path) -> Store:
    """Make the store."""
    store = Store.open(root)
    backend = DirectoryBackend(store)
    bundle = read_bundle(source("count", '\n    yield {"null": {"value": 1}}\n'), KNOWN)
    Registry(store).add("count", bundle, now_ms=1, granted=True)
    note = lines.spill({"outcome": "x"}, "outcome", backend.blobs.put(b'"x"'), 3)
    for thread, steps, place in ((LONG, 1000, 0), (CHILD, 1, 0), (PACKED, 2, 0), (IMPORTED, 1, -1)):
        script = Script.begun(bundle.hash, thread)
        for seq in range(1, steps + 1):
            script.intent(seq).step(seq, **(note if thread == LONG and seq == 1 else {}))
        entry = ThreadEntry(
            bundle=bundle.hash,
            id=thread,
            place=place,
            by_thread=thread == CHILD,
            archived=thread == PACKED,
        )
        notes = ThreadNotes(
            info=INFO if thread == LONG else b"", origin=ORIGIN if thread == IMPORTED else None
        )
        backend.threads.start(entry, script.sealed, notes)
    backend.threads.mark_removed(bundle.hash, REMOVED)
    backend.threads.set_pinned(bundle.hash, PACKED, pinned=True)
    first, _ = chain.seal(chain.conversation_seed(LONG), b'{"seq":0,"timestamp":1')
    backend.conversations.start(LONG, [first])
    for name in DOCUMENTS:
        backend.documents.replace(name, f"{name}\0\n".encode(), version=None)
    for name in _MACHINE:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("a machine's own")
    return store


def bundle_of(store: Store) -> BundleHash:
    """Return the store's one bundle."""
    [bundle] = store.find_bundles()
    return bundle


def more_lines(store: Store, thread: ThreadId, count: int) -> None:
    """Append intents to a thread."""
    backend = DirectoryBackend(store)
    with backend.threads.open(bundle_of(store), thread) as owner:
        script = Script(bundle=bundle_of(store), thread=thread, digest=owner.head.digest)
        for _ in range(count):
            script.control("note")
        owner.append(script.sealed)


def shared_files(root: Path) -> dict[str, bytes]:
    """Return the files of a store that a copy has byte by byte, by their relative names, and the
    order of starts.
    """
    shared = {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("bundles", "blobs", "logs", "conversations")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and path.name != "order"
    }
    order = Store.open(root).start_order()
    children = Store.open(root).child_threads()
    started = [
        f"{thread}{thread in children}" for thread in sorted(order, key=lambda one: order[one])
    ]
    for name in (*DOCUMENTS, "workflow.yaml"):
        if (root / name).exists():
            shared[name] = (root / name).read_bytes()
    return {**shared, "order": os.linesep.join(started).encode()}
