"""Canonical JSON: `decode` accepts only the text that `encode` writes."""

from __future__ import annotations

import pytest
from uncaged_engine.journal.codec import MAX_DEPTH, CodecError, decode, depth, encode, encode_bytes


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        1.5,
        1e300,
        "",
        'é\u2028\U0001f600\x00\n"\\',
        [],
        {},
        [1, [2, {"a": None}]],
        {"": {"b": []}},
    ],
)
def test_what_was_encoded_decodes_to_the_same(value: object) -> None:
    """decode(encode(x)) is x, and its text is UTF-8 with no escapes but the necessary ones."""
    assert decode(encode(value).encode()) == value


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a": 1}',
        b" 1",
        b"1 ",
        b"1\n",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"1.0e0",
        b"01",
        b"1.50",
        b'"\\u0041"',
        b'"\\ud800"',
        b'"\\/"',
        b'"a\xff"',
        b'"\x00"',
        b"",
        b"nul",
        b"[1,]",
        b"{'a':1}",
        b"\xef\xbb\xbf1",
        "1".encode("utf-16"),
        b"9" * 5000,
    ],
)
def test_another_spelling_is_refused(raw: bytes) -> None:
    """Duplicate keys, white space, NaN, escapes that need not be, other encodings: each is an
    error, never a value.
    """
    with pytest.raises(CodecError):
        decode(raw)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_capped(opening: str, closing: str) -> None:
    """Sixty-four containers inside one another pass, one more does not, and a hundred thousand are
    no crash.
    """
    inner = "0" if opening != "[" else ""
    decode((opening * MAX_DEPTH + inner + closing * MAX_DEPTH).encode())
    for count in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(CodecError, match="nested deeper than 64"):
            decode((opening * count + inner + closing * count).encode())


def test_many_shallow_containers_pass() -> None:
    """The cap is on depth, not on number."""
    value: list[dict[str, list[int]]] = [{"a": []} for _ in range(1000)]
    assert decode(encode(value).encode()) == value


def test_size_is_capped() -> None:
    """The cap counts bytes, and holds before anything is parsed."""
    assert decode(b'"12345678"', max_bytes=10) == "12345678"
    with pytest.raises(CodecError, match="11 bytes are more than 10"):
        decode(b'"123456789"', max_bytes=10)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, b"bytes", object(), "\ud800"]
)
def test_what_is_no_json_cannot_be_encoded(value: object) -> None:
    """A value without a JSON spelling is an error when it is written, not when it is read."""
    with pytest.raises((ValueError, TypeError)):
        encode(value).encode()


@pytest.mark.parametrize(
    ("value", "levels"), [(1, 0), ([], 1), ({}, 1), ([[]], 2), ({"a": [{"b": 1}], "c": 2}, 3)]
)
def test_depth_counts_containers_inside_one_another(value: object, levels: int) -> None:
    """A scalar has depth 0; the deepest branch counts."""
    assert depth(value) == levels


@pytest.mark.parametrize("around", ["", "a" * 100])
def test_bytes_and_text_have_the_same_spelling(around: str) -> None:
    """The quick way for a text spells each character as the encoder does, alone and in a long
    text.
    """
    for code in (*range(0x100), 0x2028, 0xFFFF, 0x1F600):
        text = f"{around}{chr(code)}{around}"
        assert encode_bytes(text) == encode(text).encode(), code
