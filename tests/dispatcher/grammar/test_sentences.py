"""Sentences: limits, characters that are refused, separators and boundaries of words."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar.sentences import (
    MAX_CHARACTERS,
    Sentence,
    SentenceError,
    fold,
    number_value,
)
from uncaged_dispatcher.grammar.syntax import Spacing


def test_a_sentence_beyond_the_limit_is_refused() -> None:
    """A sentence of 2,001 characters is refused with its length; one of 2,000 is read."""
    assert Sentence("a" * MAX_CHARACTERS).size == 2000
    with pytest.raises(SentenceError, match="2001 characters; at most 2000"):
        Sentence("a" * (MAX_CHARACTERS + 1))


@pytest.mark.parametrize(
    "character", ["\0", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800", "\udfff"]
)
def test_a_character_that_deceives_readers_is_refused(character: str) -> None:
    """A control character, a control of direction and a lone surrogate are refused by name."""
    with pytest.raises(SentenceError, match=rf"U\+{ord(character):04X} at place 3"):
        Sentence(f"ab{character}c")


def test_marks_of_direction_are_separators() -> None:
    """A right-to-left mark that a keyboard inserts separates words and is no text."""
    sentence = Sentence("\u200fשלום\u200f עולם")
    assert sentence.solid[0] == 1
    assert sentence.trimmed[6] == 5


def test_folding_keeps_each_place() -> None:
    """Letters whose other case is longer stay, so that places mean the same in both texts."""
    text = "İSTANBUL Straße ΣΑΣ K"
    assert len(fold(text)) == len(text)
    assert fold("HELLO Straße") == "hello straße"
    assert fold("ΣΑΣ") == fold("σας")


@pytest.mark.parametrize(
    ("text", "place", "divided"),
    [
        ("directions", 3, True),
        ("set10", 3, False),
        ("1234", 2, True),
        ("再生する", 2, False),
        ("안녕하세요", 2, True),
        ("привет", 2, True),
        ("नमस्ते", 2, True),
        ("مرحبا", 2, True),
        ("cafe\u0301", 4, True),
        ("play你", 4, False),
        ("a b", 1, False),
    ],
)
def test_a_word_of_a_word_script_is_whole(text: str, place: int, divided: bool) -> None:
    """A place between two letters of scripts with space between words, or two digits, divides a
    word; Chinese and Japanese characters, and digits beside letters, do not.
    """
    sentence = Sentence(text)
    assert sentence.inside_word(place) is divided
    assert sentence.boundary_after(place, Spacing.AUTO) is not divided
    assert sentence.boundary_before(place, Spacing.AUTO) is not divided
    assert sentence.boundary_after(place, Spacing.OPTIONAL)


def test_required_spacing_needs_a_separator() -> None:
    """With required spacing a digit after a letter is no boundary; space and punctuation are."""
    assert not Sentence("set10").boundary_after(3, Spacing.REQUIRED)
    assert Sentence("set 10").boundary_after(3, Spacing.REQUIRED)
    assert Sentence("set,10").boundary_after(3, Spacing.REQUIRED)
    assert Sentence("set").boundary_after(3, Spacing.REQUIRED)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1f", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("-2.50", -2.5),
        ("+3e2", 300),
        ("13.0", 13),
        ("1e999", None),
        ("0x" + "f" * 900, None),
    ],
)
def test_a_number_has_its_value(text: str, value: object) -> None:
    """A number of each form has its value; one beyond the range of numbers has none."""
    assert number_value(text) == value
