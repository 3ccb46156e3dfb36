"""Plain data as readable source text."""

from __future__ import annotations

import ast
import re
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.builders.text.literal import WIDTH, quote, write_literal
from uncaged_bundles.errors import BundleError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(DATA)
def test_the_text_means_the_data(value: object) -> None:
    """Whatever JSON can hold comes back from its literal, in the same order."""
    back = ast.literal_eval(write_literal(value))
    assert back == value
    assert repr(back) == repr(value)


@given(st.text())
def test_a_quoted_text_is_one_line_without_unseen_characters(text: str) -> None:
    """The source has no control character and no character that reverses text."""
    quoted = quote(text)
    assert ast.literal_eval(quoted) == text
    assert not set(quoted) & set("\n\r\t\x00\x1b\x7f\x85\u00ad\u200b\u200f\u2028\u202e\u2066\ufeff")


@pytest.mark.parametrize(
    "character",
    "\x00\x1b\x7f\x85\u00ad\u200b\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\ud800",
)
def test_characters_that_hide_or_turn_text_are_escaped(character: str) -> None:
    """A reviewer sees the escape in the source, not its effect."""
    assert re.fullmatch(r'"a\\(x[0-9a-f]{2}|u[0-9a-f]{4})b"', quote(f"a{character}b"))


def test_letters_of_all_scripts_stay_readable() -> None:
    """Only what hides is escaped."""
    assert quote("Größe 大 😀") == '"Größe 大 😀"'


def test_long_prompts_are_readable() -> None:
    """A line of a prompt is one line of source; a longer one is cut between words."""
    prompt = "First.\n\n" + "word " * 60 + "\nLast."
    text = write_literal({"systemPrompt": prompt}, used=len("descriptor = "))
    lines = text.split("\n")
    assert lines[:4] == ["{", '    "systemPrompt": (', '        "First.\\n"', '        "\\n"']
    assert max(map(len, lines)) <= WIDTH
    assert all(line.endswith(' "') for line in lines if "word" in line and "\\n" not in line)
    assert lines[-3:] == ['        "Last."', "    ),", "}"]
    assert ast.literal_eval(text) == {"systemPrompt": prompt}


def test_short_data_stays_on_one_line_and_long_data_does_not() -> None:
    """A mapping is laid out over lines only when it does not fit, with a comma after each."""
    assert write_literal({"a": [1, 2.5, None, True]}) == '{"a": [1, 2.5, None, True]}'
    assert write_literal(["x" * 70, "y" * 70]) == f'[\n    "{"x" * 70}",\n    "{"y" * 70}",\n]'


def test_quotes_are_those_that_need_fewer_escapes() -> None:
    """Double quotes, unless the text holds them and no single ones."""
    assert [quote("it"), quote("it's"), quote('"it"'), quote("'\"")] == [
        '"it"',
        '"it\'s"',
        "'\"it\"'",
        '"\'\\""',
    ]


def test_mappings_and_tuples_are_written_as_json_knows_them() -> None:
    """A read-only mapping is a dict and a tuple is a list: JSON has no others."""
    assert write_literal(MappingProxyType({"a": (1, 2)})) == '{"a": [1, 2]}'


BAD: list[tuple[Any, str]] = [
    ({"a": {"b": [0, {1, 2}]}}, r"a\.b\[1\] is \{1, 2\}"),
    ({"a": float("nan")}, "a is nan"),
    ({"a": [float("inf")]}, r"a\[0\] is inf"),
    ({"a": {3: "x"}}, "a has the key 3"),
    (b"x", "the value is b'x'"),
    ({"a": object}, "a is <class 'object'>"),
]


@pytest.mark.parametrize(("value", "message"), BAD)
def test_what_is_no_data_is_named_with_its_path(value: Any, message: str) -> None:
    """Sets, bytes, objects, NaN and keys that are no text are refused with the dotted path."""
    with pytest.raises(BundleError, match=message):
        write_literal(value)
