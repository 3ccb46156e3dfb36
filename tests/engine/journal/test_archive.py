"""A compressed journal is read like a plain one."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from testbed.bundles import COUNT, granted, place_script, script_of
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import archive
from uncaged_engine.state.observe import summarise, view
from uncaged_engine.threads.verify import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "X.data.jsonl"
    path.write_bytes(b'{"a":1}\n' * 1000)
    return path


def test_compressing_and_restoring_give_the_same_bytes(path: Path) -> None:
    """One file is there at a time, the plain one or the packed one."""
    data = path.read_bytes()
    packed = archive.compress(path)
    assert (packed.name, path.exists()) == ("X.data.jsonl.zst", False)
    assert packed.stat().st_size < len(data) / 10
    assert archive.is_archived(packed)
    assert archive.read(packed) == data
    assert archive.restore(packed) == path
    assert path.read_bytes() == data
    assert not packed.exists()


@pytest.mark.parametrize("at", [0, 5, -1])
def test_a_damaged_frame_is_an_error(path: Path, at: int) -> None:
    """Magic number, header or checksum: the file is named, nothing is guessed."""
    packed = archive.compress(path)
    data = bytearray(packed.read_bytes())
    data[at] ^= 0xFF
    packed.write_bytes(data)
    with pytest.raises(DamagedError, match="cannot be unpacked"):
        archive.read(packed)


@pytest.mark.parametrize("change", ["cut", "extended", "empty"])
def test_a_frame_that_is_not_exactly_whole_is_an_error(path: Path, change: str) -> None:
    """Half a frame, and a frame with something behind it."""
    packed = archive.compress(path)
    data = packed.read_bytes()
    packed.write_bytes({"cut": data[:-3], "extended": data + b"more", "empty": b""}[change])
    with pytest.raises(DamagedError, match="cannot be unpacked"):
        archive.read(packed)


def test_a_frame_that_claims_to_be_huge_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it says its size or not, no more is unpacked than the limit."""
    monkeypatch.setattr(archive, "MAX_BYTES", 1000)
    packed = path.with_name("Y.data.jsonl.zst")
    for told in (True, False):
        packed.write_bytes(zstandard.ZstdCompressor(write_content_size=told).compress(bytes(1001)))
        with pytest.raises(DamagedError):
            archive.read(packed)
        packed.write_bytes(zstandard.ZstdCompressor(write_content_size=told).compress(bytes(1000)))
        assert archive.read(packed) == bytes(1000)


def test_readers_do_not_see_the_difference(store: Store) -> None:
    """Listing, view and proof of an archived thread are those of the plain one."""
    bundle = granted(store, COUNT)
    script = (
        script_of(bundle, params={"n": 2})
        .done(1)
        .done(2)
        .end("completed", result={"success": True, "message": "sum 3"})
    )
    placed = place_script(store, bundle, script)
    place = (bundle.hash, placed.thread)
    plain = summarise(store, *place, placed.path), view(store, *place, placed.path)
    packed = archive.compress(placed.path)
    assert (summarise(store, *place, packed), view(store, *place, packed)) == plain
    assert verify(store, *place, packed, prefer="auto", deadline_s=20).ok


@pytest.mark.parametrize("size", [10, 10_000])
def test_the_first_line_is_whole_wherever_the_journal_is(tmp_path: Path, size: int) -> None:
    """A start record of any length comes whole from the plain journal and from the packed one."""
    path = tmp_path / "thread.jsonl"
    first = b'{"start":"%b"}\n' % (b"x" * size)
    path.write_bytes(first + b"more\n")
    assert archive.first_line(path) == first
    archive.compress(path)
    assert archive.first_line(path) == first
