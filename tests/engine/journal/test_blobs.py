"""Contents too large for a line are files named by their hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testbed.journals import Script
from uncaged_bundles.errors import DamagedError
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import BlobDirectory, blob_hash, effect_mark


@pytest.fixture
def blobs(tmp_path: Path) -> BlobDirectory:
    return BlobDirectory(tmp_path)


def test_what_was_put_can_be_got(blobs: BlobDirectory) -> None:
    """Equal bytes are one file."""
    name = blobs.put(b"large")
    assert blobs.put(b"large") == name == blob_hash(b"large")
    assert blobs.get(name) == b"large"
    assert [one.name for one in blobs.directory.iterdir()] == [name]


def test_a_blob_put_aside_is_the_same_file(blobs: BlobDirectory) -> None:
    """Whichever way bytes are put, they are one file, and no temporary one is left."""
    name = blobs.put_aside(b"large")
    assert blobs.put_aside(b"large") == blobs.put(b"large") == name
    assert blobs.get(name) == b"large"
    assert [one.name for one in blobs.directory.iterdir()] == [name]


def test_a_blob_that_lies_is_not_believed(blobs: BlobDirectory) -> None:
    """Changed bytes and a missing file are errors that name the blob."""
    name = blobs.put(b"large")
    (blobs.directory / name).write_bytes(b"other")
    with pytest.raises(DamagedError, match=name):
        blobs.get(name)
    (blobs.directory / name).unlink()
    with pytest.raises(DamagedError, match="missing"):
        blobs.get(name)


def test_a_damaged_blob_is_mended_by_the_same_bytes(blobs: BlobDirectory) -> None:
    """A file of that name with other bytes (a disk that lost them) is written again."""
    name = blobs.put(b"large")
    (blobs.directory / name).write_bytes(b"")
    assert blobs.put(b"large") == name
    assert blobs.get(name) == b"large"


def test_the_largest_field_is_moved(blobs: BlobDirectory) -> None:
    """The note says which field it was and how long; the others stay."""
    fields = blobs.spill({"role": "r", "content": "c" * 100, "meta": {"a": 1}})
    assert fields == {
        "role": "r",
        "content": None,
        "meta": {"a": 1},
        "blob": {"field": "content", "hash": blob_hash(b'"' + b"c" * 100 + b'"'), "bytes": 102},
    }


def test_a_line_is_expanded_for_the_bundle(blobs: BlobDirectory) -> None:
    """The bundle gets the field back in its old place and no trace of the blob; a line without a
    blob is passed unchanged.
    """
    script = (
        Script.begun().intent(1).add(lines.step(1, blobs.spill({"outcome": [1, "é"]}), 5)).done(2)
    )
    assert json.loads(blobs.expand(script.sealed[2])) == {
        "seq": 1,
        "outcome": [1, "é"],
        "timestamp": 5,
    }
    assert blobs.expand(script.sealed[4]) is script.sealed[4]


def test_a_record_is_expanded_for_readers(blobs: BlobDirectory) -> None:
    """Parsed records get their field back in the same way."""
    record = {"seq": 1, **blobs.spill({"outcome": "x"}), "timestamp": 5}
    assert blobs.expand_record(record) == {"seq": 1, "outcome": "x", "timestamp": 5}
    assert blobs.expand_record({"seq": 1}) == {"seq": 1}


def test_an_effect_s_mark_is_itself_or_its_hash() -> None:
    """Up to the limit the digest takes the bytes, beyond it the note of a blob."""
    small, large = b"x" * lines.MARK_BYTES, b"x" * (lines.MARK_BYTES + 1)
    assert effect_mark(small) == small
    assert effect_mark(large) == lines.blob_mark(blob_hash(large))
