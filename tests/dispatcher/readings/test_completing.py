"""Completion by the rules of several flows at once."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar import load
from uncaged_dispatcher.grammar.continuations import Direction
from uncaged_dispatcher.grammar.sentences import SentenceError
from uncaged_dispatcher.readings.completing import complete_sentence

GRAMMARS = [
    load(f"<Start> = {text};").compiled
    for text in (
        "what time is it -> 1",
        "what $(kind:word) files are there -> {params: {kind: kind}}",
        "list (the | my)? files in $(place) -> {params: {place: place}}",
        "list the branches -> 1",
    )
]


def completed(prefix: str, direction: Direction = Direction.FORWARD) -> dict[str, int]:
    """Return each offered word with the length of the text that was read before it."""
    found = complete_sentence(GRAMMARS, prefix, direction)
    return {word: group.matched for group in found.groups for word in group.words}


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("", {"what": 0, "list": 0}),
        ("wh", {"what": 0}),
        ("what", {"time": 4}),
        ("what t", {"time": 4, "files": 6}),
        ("list ", {"the": 4, "my": 4, "files": 4}),
        ("list the", {"files": 8, "branches": 8}),
        ("LIST THE B", {"branches": 8}),
        ("list the x", {}),
        ("sing a song", {}),
    ],
)
def test_words_of_all_rules_are_offered_behind_what_each_read(
    prefix: str, words: dict[str, int]
) -> None:
    """A word that is half typed is completed by the rules that have it, also if another rule reads
    it as free text; words that do not fit are not offered.
    """
    assert completed(prefix) == words


def test_a_capture_that_can_come_next_is_named() -> None:
    """Free text is no closed set, and its capture is named."""
    found = complete_sentence(GRAMMARS, "what ", Direction.FORWARD)
    assert (found.closed_set, found.captures, found.cut) == (False, ("kind",), False)
    found = complete_sentence(GRAMMARS, "list files in", Direction.FORWARD)
    assert found.captures == ("place",)
    assert complete_sentence(GRAMMARS, "list the b", Direction.FORWARD).closed_set


def test_rules_beyond_the_budget_are_left_out_and_that_is_said() -> None:
    """Without processor time no rule is asked, and the completion says that it is cut."""
    found = complete_sentence(GRAMMARS, "", Direction.FORWARD, budget_s=-1.0)
    assert (found.groups, found.cut) == ((), True)


def test_a_text_that_is_too_long_is_an_error() -> None:
    """The limit of sentences is that of their beginnings."""
    with pytest.raises(SentenceError):
        complete_sentence(GRAMMARS, "x " * 5_000, Direction.FORWARD)
