"""Each line's digest covers its own text and the digest before it."""

from __future__ import annotations

import pytest
from testbed.journals import BUNDLE, THREAD
from uncaged_bundles.ids import BundleHash, ThreadId, decode_crockford
from uncaged_engine.journal import chain


def test_a_sealed_line_is_json_and_checks() -> None:
    """seal closes the record, adds the chain as its last key and one LF; check gives the digest
    that seal gave.
    """
    before = chain.seed(BUNDLE, THREAD)
    line, digest = chain.seal(before, b'{"control":"pause","timestamp":1')
    assert line.startswith(b'{"control":"pause","timestamp":1,"chain":"')
    assert line.endswith(b'"}\n')
    assert len(line) - len(b'{"control":"pause","timestamp":1') == chain.SEAL_BYTES
    assert chain.check(before, line) == digest
    assert chain.stated(line) == digest


def test_the_digest_is_spelt_in_crockford_base32() -> None:
    """Twelve bytes are twenty characters, most significant first; the last four of the hundred bits
    are zero.
    """
    digest = bytes(chain.DIGEST_BYTES)
    for number in range(1000):
        line, digest = chain.seal(digest, b'{"n":%d' % number)
        text = line[-3 - chain.CHAIN_CHARACTERS : -3].decode()
        assert decode_crockford(text) == int.from_bytes(digest, "big") << 4


def test_the_seed_depends_on_bundle_and_thread() -> None:
    """A journal that is moved under another name does not check."""
    seeds = {
        chain.seed(BUNDLE, THREAD),
        chain.seed(BundleHash(BUNDLE[::-1]), THREAD),
        chain.seed(BUNDLE, ThreadId(THREAD[::-1])),
    }
    assert len(seeds) == 3


def test_every_flipped_bit_shows() -> None:
    """No single changed bit of a line, its seal included, passes."""
    before = chain.seed(BUNDLE, THREAD)
    line, _ = chain.seal(before, b'{"seq":1,"outcome":7,"timestamp":1')
    for position in range(len(line)):
        for bit in range(8):
            changed = bytearray(line)
            changed[position] ^= 1 << bit
            assert chain.check(before, bytes(changed)) is None, (position, bit)


def test_order_shows() -> None:
    """A line checks only behind the line that it was sealed behind."""
    seed = chain.seed(BUNDLE, THREAD)
    first, after_first = chain.seal(seed, b'{"a":1')
    second, _ = chain.seal(after_first, b'{"a":2')
    assert chain.check(seed, second) is None
    assert chain.check(after_first, first) is None
    assert chain.check(after_first, second) is not None


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b'{"chain":"0000000000000000000"}\n', b"x" * 200 + b"\n"]
)
def test_what_has_no_seal_neither_checks_nor_states(line: bytes) -> None:
    """Too short, or without the key in its place: no digest."""
    assert chain.check(chain.seed(BUNDLE, THREAD), line) is None
    assert chain.stated(line) is None


def test_a_stated_digest_must_be_crockford() -> None:
    """A seal with a letter that the alphabet lacks states nothing."""
    line, _ = chain.seal(chain.seed(BUNDLE, THREAD), b'{"a":1')
    assert chain.stated(line[:-5] + b"U" + line[-4:]) is None
