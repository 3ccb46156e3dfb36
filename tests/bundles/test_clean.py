"""Cleaning of text from unknown sources."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from uncaged_bundles.clean import (
    CONTROL_SEQUENCE,
    INVISIBLE,
    SHORT_ESCAPE,
    clean,
    clean_line,
    columns,
    encodable,
    shorten,
)

ATTACKS = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "clear screen": ("\x1b[2J\x1b[Hgone?", "gone?"),
    "title": ("\x1b]0;owned\x07after", "after"),
    "title with ST": ("\x1b]0;owned\x1b\\after", "after"),
    "hyperlink": ("\x1b]8;;http://bad\x1b\\text\x1b]8;;\x1b\\", "text"),
    "clipboard": ("\x1b]52;c;cm0gLXJm\x07x", "x"),
    "device string": ("\x1bPq#0;2;0\x1b\\x", "x"),
    "C1 colour": ("\x9b31mred", "red"),
    "C1 title": ("\x9d0;owned\x9cafter", "after"),
    "C1 alone": ("a\x84b\x8dc", "abc"),
    "reset": ("\x1bcafter", "after"),
    "character set": ("\x1b(0lqk", "lqk"),
    "backspace": ("rm\x08\x08ls", "rmls"),
    "bell and null": ("a\x07\x00b\x7f", "ab"),
    "direction override": ("user\u202etxt.exe\u202c", "usertxt.exe"),
    "isolates": ("\u2066a\u2069\u200f", "a"),
    "tag characters": ("a\U000e0041b", "ab"),
    "zero width": ("pass\u200bword\ufeff", "password"),
    "nested": ("\x1b\x1b[31m[31mx", "31mx"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_known_sequences_leave_only_their_text(name: str) -> None:
    """Each family of sequences is taken out whole, and the text around it stays."""
    dirty, wanted = ATTACKS[name]
    assert clean(dirty) == wanted


def test_an_unterminated_string_sequence_hides_nothing() -> None:
    """Text after an introducer that is never closed is shown, not swallowed."""
    assert (
        clean("\x1b]0;title and all that follows\nnext line")
        == "0;title and all that follows\nnext line"
    )
    assert clean("\x1b]0;title\nnext line\x07") == "0;title\nnext line"


def test_a_carriage_return_cannot_paint_over_a_line() -> None:
    """A lone CR becomes a line feed, like CRLF, and Unicode's own line ends."""
    assert clean("bad\rgood\r\nmore\u2028x\x85y") == "bad\ngood\nmore\nx\ny"


def test_lone_surrogates_can_be_printed() -> None:
    """Text from broken JSON is encodable afterwards."""
    clean("\ud800x").encode()


def test_data_of_any_page_can_be_encoded() -> None:
    """In JSON data only halves of surrogate pairs are replaced, in keys, too."""
    found = encodable({"a\ud800": ["\udfffb", 1, None, {"c": "\U0001f600"}]})
    assert found == {"a\ufffd": ["\ufffdb", 1, None, {"c": "\U0001f600"}]}


def test_ordinary_text_stays_as_it_is() -> None:
    """Tabs, line feeds, accents, CJK and joined emoji are no attack."""
    text = "a\tb\nÅß 漢字 👩\u200d💻"
    assert clean(text) == text


@given(
    st.text(
        alphabet=st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x9d[]0;m\\\x07\x9c\u202e"))
    )
)
def test_nothing_that_steers_survives(text: str) -> None:
    """No control character but tab and line feed, no surrogate and no override is left, and
    cleaning twice changes nothing.
    """
    cleaned = clean(text)
    for character in cleaned:
        assert character in "\t\n" or unicodedata.category(character) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )
    assert clean(cleaned) == cleaned


def test_a_line_has_no_line_ends() -> None:
    """clean_line folds white space of any kind into single spaces."""
    assert clean_line(" a\n\n b\tc\r\nd ") == "a b c d"


@given(st.text(), st.integers(min_value=1, max_value=30))
def test_shortened_text_fits(text: str, width: int) -> None:
    """shorten never takes more columns than it was given, also with wide characters."""
    assert columns(shorten(text, width)) <= width


def test_shortening_marks_the_cut() -> None:
    """A cut line ends with an ellipsis; one that fits is left alone."""
    assert shorten("phase done", 7) == "phase…"
    assert shorten("漢字漢字", 5) == "漢字…"
    assert shorten("phase", 5) == "phase"


STRINGS = re.compile(
    "(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"
)
"""String sequences as one expression, which takes quadratic time."""


@given(st.text(alphabet="ab\n\x07\x1b\x90\x9c\x9d]P\\[0m", max_size=30))
@example("\x1b\x1bP\x07P0\x07")
def test_string_sequences_are_those_of_their_expression(text: str) -> None:
    """The linear search removes what the expression describes."""
    expected = STRINGS.sub("", f"é{text}")
    # in one pass: what they leave may look like one of them again
    for pattern in (CONTROL_SEQUENCE, SHORT_ESCAPE, INVISIBLE):
        expected = pattern.sub("", expected)
    assert clean(f"é{text}") == expected


@pytest.mark.parametrize("part", ["\x90", "\x1b]", "\x9b", "\x90\x1b", "\x9da", "\x1b]\n"])
def test_a_flood_of_sequences_takes_linear_time(part: str) -> None:
    """Introducers without an end cost no search each: as one expression, these take minutes."""
    begin = time.process_time()
    clean(part * (200_000 // len(part)))
    assert time.process_time() - begin < 2
