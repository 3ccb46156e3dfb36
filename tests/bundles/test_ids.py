from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID
from uncaged_bundles import ids
from uncaged_bundles.errors import UsageError

BYTES_10 = st.binary(min_size=10, max_size=10)
MILLISECONDS = st.integers(0, (1 << 48) - 1)


def test_the_hash_of_nothing_is_the_known_one() -> None:
    """XXH64 with seed 0, 13 digits, canonical leading zeros."""
    assert ids.bundle_hash(b"") == "EYHPV6X8XHTCS"


def test_one_byte_more_is_another_version() -> None:
    """The hash covers every byte, line ends included."""
    assert ids.bundle_hash(b"a\n") != ids.bundle_hash(b"a\r\n")


def test_a_known_millisecond_has_the_known_prefix() -> None:
    """ULIDs are canonical: 48 bits of time in 10 digits."""
    assert ids.new_thread_id(1714963200000, bytes(10)).startswith("01HX5WBE00")


@given(MILLISECONDS, BYTES_10)
def test_thread_ids_are_those_of_the_ulid_library(now_ms: int, entropy: bytes) -> None:
    """Another implementation writes the same id for the same time and chance."""
    thread_id = ids.new_thread_id(now_ms, entropy)
    assert thread_id == str(ULID.from_bytes(now_ms.to_bytes(6) + entropy))
    assert ids.thread_created_ms(thread_id) == now_ms


@given(MILLISECONDS, BYTES_10)
def test_reading_ignores_case_alone(now_ms: int, entropy: bytes) -> None:
    """Any case comes in, the canonical spelling goes out."""
    thread_id = ids.new_thread_id(now_ms, entropy)
    assert ids.parse_thread_id(thread_id.lower()) == thread_id
    assert ids.is_thread_id(thread_id)
    assert ids.is_thread_id(thread_id.lower()) == (thread_id.lower() == thread_id)


@given(st.binary(max_size=64))
def test_a_hash_reads_back_in_any_case(source: bytes) -> None:
    """Every hash that we make is one that we read."""
    made = ids.bundle_hash(source)
    assert ids.is_bundle_hash(made)
    assert ids.parse_bundle_hash(made.lower()) == made == ids.parse_bundle_hash(made)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "EYHPV6X8XHTC",  # 12
        "EYHPV6X8XHTCSS",  # 14
        "IYHPV6X8XHTCS",  # I, L, O, U are no digits
        "EYHPV6X8XHTC\x00",
        "../../../../e",
        "GYHPV6X8XHTCS",  # needs 65 bits
        "EYHPV6X8XHTC\N{LATIN SMALL LETTER DOTLESS I}",  # upper() would make an ASCII letter of it
        "EYHPV6X8XHTC\N{FULLWIDTH DIGIT ONE}",
        " EYHPV6X8XHTC",
    ],
)
def test_what_is_no_hash_is_named(text: str) -> None:
    """Wrong length, wrong alphabet or too large: the error shows the text."""
    assert not ids.is_bundle_hash(text)
    with pytest.raises(UsageError) as caught:
        ids.parse_bundle_hash(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "01HX5WBE00", "8" + "0" * 25, "01HX5WBE00ZZZZZZZZZZZZZZZU", "../" * 8 + "00", "0" * 300],
)
def test_what_is_no_thread_id_is_named(text: str) -> None:
    """The error shows the text, cut when it is long."""
    assert not ids.is_thread_id(text)
    with pytest.raises(UsageError) as caught:
        ids.parse_thread_id(text)
    assert repr(text[:80]) in str(caught.value)


@given(st.integers(0, (1 << 130) - 1))
def test_numbers_survive_writing_and_reading(number: int) -> None:
    """encode and decode are each other's inverse, in either case."""
    text = ids.encode_crockford(number, 26)
    assert len(text) == 26
    assert ids.decode_crockford(text) == ids.decode_crockford(text.lower()) == number


def test_a_number_that_does_not_fit_is_refused() -> None:
    """Nothing is cut off silently."""
    assert ids.encode_crockford(31, 1) == "Z"
    for number, length in ((32, 1), (-1, 13)):
        with pytest.raises(ValueError, match="does not fit"):
            ids.encode_crockford(number, length)


@given(st.binary(max_size=20))
def test_bytes_take_as_many_digits_as_they_need(data: bytes) -> None:
    """ceil(bits / 5) digits: 12 bytes give 20."""
    text = ids.base32_bytes(data)
    assert len(text) == -(-len(data) * 8 // 5)
    assert ids.decode_crockford(text) == int.from_bytes(data)


@pytest.mark.parametrize(
    ("now_ms", "entropy"), [(-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9)), (0, bytes(11))]
)
def test_a_thread_id_takes_48_bits_of_time_and_80_of_chance(now_ms: int, entropy: bytes) -> None:
    """A wrong argument is an error, not a shorter id."""
    with pytest.raises(ValueError, match="thread id"):
        ids.new_thread_id(now_ms, entropy)


@given(st.tuples(MILLISECONDS, MILLISECONDS), BYTES_10, BYTES_10)
def test_thread_ids_sort_by_time(times: tuple[int, int], first: bytes, second: bytes) -> None:
    """Text order is time order, whatever the chance in them."""
    early, late = sorted(times)
    if early < late:
        assert ids.new_thread_id(early, first) < ids.new_thread_id(late, second)
