"""Compressed answers: encodings that are unpacked, and those that are refused."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib

import pytest
from uncaged_effects.web.decoding import MAX_MEMBERS, Decompressor
from uncaged_engine.network.problems import WebProblem

TEXT = b"a text that is longer than nothing " * 50


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def unpacked(encoding: str, data: bytes, *, pieces: int = 7, max_bytes: int = 1 << 20) -> bytes:
    decompressor = Decompressor(encoding, max_bytes)
    for start in range(0, len(data), pieces):
        decompressor.feed(data[start : start + pieces])
    assert not decompressor.is_full
    return decompressor.finish()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        pytest.param("", TEXT, id="none"),
        pytest.param("identity", TEXT, id="identity"),
        pytest.param("gzip", gzip.compress(TEXT), id="gzip"),
        pytest.param(" GZip ", gzip.compress(TEXT), id="gzip in another spelling"),
        pytest.param("x-gzip", gzip.compress(TEXT), id="x-gzip"),
        pytest.param("deflate", zlib.compress(TEXT), id="deflate"),
        pytest.param(
            "gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]), id="gzip in two members"
        ),
        pytest.param("gzip", gzip.compress(TEXT) + b"\0" * 30, id="gzip and padding"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 7, 1 << 20])
def test_a_body_is_unpacked_however_it_comes(encoding: str, packed: bytes, pieces: int) -> None:
    """Byte by byte or at once, in one stream or in several, with padding or without."""
    assert unpacked(encoding, packed, pieces=pieces) == TEXT


def test_deflate_may_come_without_its_frame() -> None:
    """Some servers never read the standard."""
    assert unpacked("deflate", bare_deflate(TEXT), pieces=1 << 20) == TEXT


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("br", "'br', but only gzip, deflate were asked for"), ("gzip, gzip", "'gzip, gzip'")],
)
def test_an_encoding_that_nobody_asked_for_is_no_answer(encoding: str, words: str) -> None:
    """A layer in a layer is a bomb in a bomb."""
    with pytest.raises(WebProblem, match=words):
        unpacked(encoding, b"x")
    assert unpacked(encoding, b"") == b""  # as the answer to HEAD


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        pytest.param(b"not gzip at all", "is not valid", id="text"),
        pytest.param(gzip.compress(TEXT)[:-9], "broke off", id="cut"),
        pytest.param(b"\x1f", "broke off", id="one byte"),
    ],
)
def test_a_broken_stream_is_no_text(packed: bytes, words: str) -> None:
    """Half a page is never taken for a whole one."""
    with pytest.raises(WebProblem, match=words) as caught:
        unpacked("gzip", packed)
    assert caught.value.kind == "body"


@pytest.mark.parametrize("size", [1000, 1001])
def test_the_limit_is_met_to_the_byte(size: int) -> None:
    """A body of as many bytes as the limit is whole; one byte more is too many."""
    for encoding, data in (("", b"x" * size), ("gzip", gzip.compress(b"x" * size))):
        decompressor = Decompressor(encoding, 1000)
        decompressor.feed(data)
        assert decompressor.is_full is (size > 1000)
        assert decompressor.finish() == b"x" * 1000


@pytest.mark.slow
def test_a_bomb_is_never_unpacked() -> None:
    """200 MB in 200 KB: memory stays near the limit."""
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join([*(packer.compress(b"\0" * (1 << 20)) for _ in range(200)), packer.flush()])
    decompressor = Decompressor("gzip", 1 << 20)
    tracemalloc.start()
    decompressor.feed(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decompressor.is_full
    assert len(decompressor.finish()) == 1 << 20
    assert peak < 8 << 20


def test_a_stream_of_nothing_ends_too() -> None:
    """Thousands of empty members unpack to nothing, and cost as much as a bomb; so do bytes that
    come for ever.
    """
    decompressor = Decompressor("gzip", 1 << 20)
    decompressor.feed(gzip.compress(b"") * (MAX_MEMBERS + 2))
    assert decompressor.is_full
    decompressor = Decompressor("gzip", 1000)
    decompressor.feed(gzip.compress(b"", 0) + b"\0" * 80_000)
    assert decompressor.is_full
    noise = os.urandom(500)
    assert unpacked("gzip", gzip.compress(noise), max_bytes=500) == noise
