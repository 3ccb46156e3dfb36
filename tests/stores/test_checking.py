"""Check of a store in a directory: each kind of damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.filled_stores import CHILD, IMPORTED, LONG, PACKED, bundle_of, filled
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import chain
from uncaged_engine.journal.origin import path_beside
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.directory.backend import DirectoryBackend


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return filled(tmp_path / "store")


def problems(store: Store) -> list[str]:
    backend = DirectoryBackend.open(store.root, create=False)
    return check_store(backend, progress=lambda _kind, _count: None).problems


def test_a_damaged_store_has_a_sentence_for_each_damage(store: Store) -> None:
    """A blob that is missing, a chain that holds over lines that make no sense, a note of origin, a
    conversation, a registry that names no bundle.
    """
    bundle = bundle_of(store)
    assert problems(store) == []
    next(store.blobs.iterdir()).unlink()
    child = store.data_path(bundle, CHILD)
    first = child.read_bytes().split(b"\n")[0] + b"\n"
    digest = chain.stated(first)
    assert digest is not None
    # the chain holds, and step 7 follows the start
    child.write_bytes(first + chain.seal(digest, b'{"seq":7,"outcome":1,"timestamp":1')[0])
    packed = store.data_path(bundle, PACKED)
    packed = packed.with_name(f"{packed.name}.zst")
    packed.write_bytes(packed.read_bytes()[:-9])
    path_beside(store.data_path(bundle, IMPORTED)).write_bytes(b"{}")
    (store.root / "conversations" / f"{LONG}.jsonl").write_bytes(b"{}\n")
    text = store.registry_path.read_text()
    store.registry_path.write_text(text.replace(bundle, "AAAAAAAAAAAAA"))
    found = problems(store)
    for words in (
        (LONG, "blob", "is missing"),
        (CHILD, "line 2"),
        (PACKED, "unpacked"),
        (IMPORTED, "origin"),
        ("conversations", LONG),
        ("registry", "AAAAAAAAAAAAA", "'count' is missing"),
    ):
        matching = [one for one in found if all(word in one for word in words)]
        assert len(matching) == 1, (words, found)
    assert len(found) == 6
