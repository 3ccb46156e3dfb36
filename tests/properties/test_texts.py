"""Texts of a journal: one spelling and one chain, whatever the values are."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testbed.journals import BUNDLE, THREAD, Script
from testbed.strategies import texts, values
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.codec import CodecError, decode, encode

pytestmark = pytest.mark.slow


@given(values)
def test_every_value_survives_a_round_trip(value: object) -> None:
    """decode(encode(x)) == x, and encoding it again gives the same bytes."""
    raw = encode(value).encode()
    assert decode(raw) == value
    assert encode(decode(raw)).encode() == raw


@given(values, st.data())
def test_no_changed_byte_decodes_to_the_same_bytes_value(
    value: object, data: st.DataObject
) -> None:
    """A text either is refused or is itself canonical: two texts never mean the same."""
    raw = bytearray(encode(value).encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(raw))
    except CodecError:
        return
    assert encode(found).encode() == bytes(raw)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_canonical(raw: bytes) -> None:
    """Nothing else than a CodecError comes out of decoding garbage."""
    with suppress(CodecError):
        assert encode(decode(raw)).encode() == raw


@given(st.dictionaries(texts, values, max_size=4), st.binary(min_size=12, max_size=12))
def test_a_seal_checks_behind_its_own_digest_only(
    fields: dict[str, object], previous: bytes
) -> None:
    """A sealed line follows the digest that it was sealed with and no other, whatever its text."""
    line, digest = chain.seal(previous, lines.step(1, {"outcome": fields}, 5))
    assert chain.check(previous, line) == chain.stated(line) == digest
    assert decode(line[:-1])
    assert chain.check(chain.link(previous, b""), line) is None


@given(values, st.integers(1, 10**9))
def test_an_effect_is_cut_out_as_it_was_written(value: object, seq: int) -> None:
    """effect_of_intent gives the very bytes, whatever they contain."""
    effect = encode({"null": value}).encode()
    line = chain.seal(chain.seed(BUNDLE, THREAD), lines.intent(seq, effect, 5))[0]
    assert lines.effect_of_intent(line) == effect
    assert lines.shape_of(line) == ("intent", seq)
    assert lines.blob_of(line) is None


@given(
    value=st.one_of(
        values,
        st.text(st.characters(), max_size=40),
        st.text(st.sampled_from('a"\\\x00\n\x1f\x7f\u00e9\u2028\U0001f600'), max_size=40),
    ),
    seq=st.integers(1, 10**9),
)
def test_a_step_has_the_one_spelling_of_its_outcome(value: object, seq: int) -> None:
    """The shortcut for a plain outcome writes the bytes that the encoder writes for the whole
    record, and refuses the texts that it refuses.
    """
    try:
        expected = encode({"seq": seq, "outcome": value, "timestamp": 5})[:-1].encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            lines.step(seq, {"outcome": value}, 5)
        return
    assert lines.step(seq, {"outcome": value}, 5) == expected


@given(st.dictionaries(st.sampled_from(["blob", "field", "hash", "x"]), values, max_size=4))
def test_no_outcome_is_taken_for_a_blob(fields: dict[str, object]) -> None:
    """Only our own note at the top of a record names one."""
    script = Script.begun().intent(1).step(1, outcome=fields)
    assert lines.blob_of(script.sealed[-1]) is None


@pytest.mark.parametrize("shape", ["intent", "step"])
@given(
    fields=st.dictionaries(st.sampled_from(["role", "content", "meta"]), values, min_size=1),
    size=st.integers(0, 10**9),
)
def test_a_blob_note_is_found_wherever_it_stands(
    shape: str, fields: dict[str, object], size: int
) -> None:
    """The note of a spilt field comes back whole."""
    name = next(iter(fields))
    spilt = lines.spill(
        {"outcome" if shape == "step" else "intent": None, **fields}, name, "ab" * 16, size
    )
    line = chain.seal(chain.seed(BUNDLE, THREAD), lines.step(1, spilt, 5))[0]
    assert lines.blob_of(line) == {"field": name, "hash": "ab" * 16, "bytes": size}
