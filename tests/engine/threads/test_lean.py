"""Bounds of documents about threads."""

from __future__ import annotations

import json

from uncaged_bundles.storage.store import Store
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_engine.threads.lean import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_TEXT_CHARACTERS,
    Excerpt,
    LeanBlobs,
)


def test_an_excerpt_is_bounded_and_names_what_it_cuts() -> None:
    """Long texts, long lists, deep values and halves of surrogate pairs become data that can be
    sent; each cut has its path and full size.
    """
    deep: object = "end"
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    excerpt = Excerpt()
    long = "x" * (MAX_TEXT_CHARACTERS + 1)
    found = excerpt.of(
        {"text": long, "list": list(range(MAX_ITEMS + 1)), "deep": deep, "half": "\ud800"}, "data"
    )
    assert len(found["text"]) == MAX_TEXT_CHARACTERS
    assert len(found["list"]) == MAX_ITEMS
    assert found["half"] == "\ufffd"
    json.dumps(found).encode()
    cut = {str(one["path"]): one for one in excerpt.cut}
    assert cut["data.text"]["characters"] == len(long)
    assert cut["data.list"]["items"] == MAX_ITEMS + 1
    assert len(cut) == 3


def test_the_texts_of_a_document_have_one_bound() -> None:
    """What comes after the bound, each item counted, is left out and named."""
    excerpt = Excerpt(10)
    assert excerpt.of(["abcdef", "ghijkl", "mnopqr"], "data") == ["abcdef", "g", ""]
    assert [one["path"] for one in excerpt.cut] == ["data[1]", "data[2]"]


def test_large_fields_stay_in_their_blobs(store: Store) -> None:
    """A lean reading has a sentence for an outcome of 10 MB, and reads only intents; a blob that is
    gone is no error.
    """
    blobs, lean = BlobDirectory(store.blobs), LeanBlobs(store.blobs)
    outcome = blobs.spill({"outcome": "x" * 10_000_000})
    assert lean.expand_record({"seq": 1, **outcome}) == {
        "seq": 1,
        "outcome": f"(10,000,002 bytes, in the blob {outcome['blob']['hash']})",  # type: ignore[index]
    }
    intent = blobs.spill({"intent": {"null": {"value": "y" * 600_000}}})
    assert list(lean.expand_record(intent)["intent"]) == ["null"]
    for path in store.blobs.iterdir():
        path.unlink()
    assert "in the blob" in lean.expand_record(intent)["intent"]
