"""Required words: sets of words of which a sentence must hold one."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar import load
from uncaged_dispatcher.grammar.requirements import MAX_SETS
from uncaged_dispatcher.grammar.sentences import index_words


def required(grammar: str) -> list[list[str]]:
    """Return the sets of the first entry."""
    return [sorted(words) for words in load(grammar).compiled.entries[0].required]


@pytest.mark.parametrize(
    ("grammar", "sets"),
    [
        ("<Start> = Copy the $(x) to $(y) -> x;", [["copy", "the", "to"]]),
        ("<Start> = (show | list) files -> 1;", [["files", "list"], ["files", "show"]]),
        ("<Start> = (please)? go (now)* -> 1;", [["go"]]),
        ("<Start> = (very)+ good -> 1;", [["good", "very"]]),
        ("<Start> = <A> end -> 1; <A> = a | a b;", [["a", "end"]]),
        ("<Start> = $(x) -> x;", [[]]),
        ("<Start> [spacing=optional] = go home -> 1;", [[]]),
        ("<Start> [spacing=none] = go <A> -> 1; <A> = home now;", [[]]),
        ("<Start> = go <A> -> 1; <A> [spacing=optional] = home now;", [["go"]]),
        ("<Start> = play你 mp3 -> 1;", [["3", "mp", "play", "你"]]),
        ("<Start> = go <A> -> 1; <A> = up <A> | up;", [["go", "up"]]),
    ],
)
def test_words_of_each_reading_are_required(grammar: str, sets: list[list[str]]) -> None:
    """Words outside of optional parts are required; where spacing lets words run together, they
    are not, because a sentence need not hold them as words.
    """
    assert required(grammar) == sets


def test_many_choices_require_fewer_words() -> None:
    """The number of sets is limited: some words are left out instead, which is safe."""
    pair = "(a | b | c | d | e)"
    assert 1 <= len(required(f"<Start> = {pair} {pair} {pair} end -> 1;")) <= MAX_SETS
    many = " | ".join(f"w{n} end" for n in range(40))
    assert required(f"<Start> = ({many}) -> 1;") == [["end", "w"]]


def test_the_entries_have_names() -> None:
    """An entry that is one rule has its name; another is the start rule itself."""
    grammar = load("<Start> = <go> | $(x:<stop>) | wait -> 1; <go> = go -> 1; <stop> = stop -> 2;")
    assert [entry.name for entry in grammar.compiled.entries] == ["go", "stop", "Start"]
    best = grammar.best("stop")
    assert best is not None
    assert best.rule == "stop"


def test_words_of_a_text_are_found() -> None:
    """Words, rows of digits and other characters alone are the units of the index."""
    assert index_words("what's up, 42nd 再生") == ["what", "s", "up", "42", "nd", "再", "生"]
