"""Completion: next words and captures in both directions, their separators, open text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uncaged_dispatcher.grammar import Completion, SentenceError, load

MUSIC = """
    <Start> = hum $(what:<Tune>) -> { call: "hum", what } | stop humming -> { call: "stop" };
    <Tune> = old song -> 1 | new song -> 2;
"""
MOVE = """
    <Start> = move $(what) into the $(room) -> { flow: "move", params: { what, to: [room] } }
            | move house -> { flow: "house" };
"""


def complete(grammar: str, prefix: str, direction: str = "forward") -> Completion:
    """Return the completion of a text."""
    return load(grammar).complete(prefix, direction)


def words(completion: Completion) -> list[str]:
    """Return the offered words of all groups."""
    return [word for group in completion.groups for word in group.completions]


@pytest.mark.parametrize(
    ("prefix", "offered", "length"),
    [
        ("", ["hum", "stop"], 0),
        ("h", ["hum", "stop"], 0),
        ("hum", ["old", "new"], 3),
        ("hum  ", ["old", "new"], 3),
        ("HUM ne", ["old", "new"], 3),
        ("hum new", ["song"], 7),
        ("hum new song", ["song"], 7),
        ("hum green", ["old", "new"], 3),
        ("hummer", ["hum", "stop"], 0),
    ],
)
def test_the_next_word_follows_the_longest_beginning(
    prefix: str, offered: list[str], length: int
) -> None:
    """Each next word is offered once, with the length of what the grammar reads; a word that has
    been begun, and the last word of a whole sentence, are offered again.
    """
    completion = complete(MUSIC, prefix)
    assert words(completion) == offered
    assert completion.matched_prefix_length == length
    assert completion.closed_set
    assert completion.direction_sensitive == (length > 0)


@pytest.mark.parametrize(
    ("prefix", "offered", "length"),
    [
        ("hum", ["hum", "stop"], 0),
        ("hum ", ["old", "new"], 3),
        ("hum new", ["old", "new"], 3),
        ("hum new song", ["song"], 7),
        ("hum ne", ["old", "new"], 3),
        ("", ["hum", "stop"], 0),
    ],
)
def test_the_backward_direction_offers_the_last_word_again(
    prefix: str, offered: list[str], length: int
) -> None:
    """Backwards, the alternatives of the last word are offered, unless a separator completed it."""
    completion = complete(MUSIC, prefix, "backward")
    assert words(completion) == offered
    assert completion.matched_prefix_length == length


@pytest.mark.parametrize(
    ("prefix", "offered", "length", "after"),
    [
        ("move the lamp", ["into"], 13, "all"),
        ("move the lamp ", ["into"], 13, "all"),
        ("move the lamp in", ["into"], 13, "all"),
        ("move the lamp into", ["the"], 18, "all"),
        ("move the lamp into th", ["the"], 18, "all"),
        ("move house", ["into"], 10, "all"),
    ],
)
def test_open_text_goes_on_or_ends(
    prefix: str, offered: list[str], length: int, after: str
) -> None:
    """Behind a free capture its next word is offered, from where that word has been begun."""
    completion = complete(MOVE, prefix)
    assert (words(completion), completion.matched_prefix_length) == (offered, length)
    assert completion.after_wildcard == after


def test_a_capture_is_offered_with_its_place_in_the_value() -> None:
    """A capture that comes next is offered with the value so far and its path; the set of words is
    open then.
    """
    completion = complete(MOVE, "move the lamp into the ")
    assert words(completion) == ["into"]
    (capture,) = completion.properties
    assert capture.names == ("params.to.0",)
    assert capture.value == {"flow": "move", "params": {"what": "the lamp", "to": [None]}}
    assert not completion.closed_set


def test_a_first_capture_is_offered_beside_words() -> None:
    """Words and captures at one place are offered together."""
    completion = complete(MOVE, "move")
    assert words(completion) == ["house"]
    assert [capture.names for capture in completion.properties] == [("params.what",)]
    assert not completion.closed_set
    assert completion.after_wildcard == "none"


def test_backwards_a_capture_is_filled_in_again() -> None:
    """Backwards from free text, the capture is offered where it began."""
    completion = complete(MOVE, "move the lamp", "backward")
    assert completion.matched_prefix_length == 4
    assert [capture.names for capture in completion.properties] == [("params.what",)]


@pytest.mark.parametrize(
    ("spacing", "mode"),
    [
        ("auto", "autoSpacePunctuation"),
        ("required", "spacePunctuation"),
        ("optional", "optionalSpacePunctuation"),
        ("none", "none"),
    ],
)
def test_the_spacing_of_the_rule_is_the_separator(spacing: str, mode: str) -> None:
    """A group says what goes between the text and its words, by the spacing of their rule."""
    completion = complete(f"<Start> [spacing={spacing}] = go home -> 1;", "go")
    assert [group.separator_mode for group in completion.groups] == [mode]


def test_words_of_different_spacing_are_groups() -> None:
    """The same word behind different separators is offered once for each."""
    grammar = "<Start> = <A> -> 1 | <B> -> 2; <A> [spacing=none] = go up; <B> = go up | go down;"
    groups = [(g.completions, g.separator_mode) for g in complete(grammar, "go").groups]
    assert groups == [(("up",), "none"), (("up", "down"), "autoSpacePunctuation")]


def test_a_number_is_offered_and_read() -> None:
    """A number that comes next is a capture; behind a number the next word is offered."""
    grammar = "<Start> = wait $(n:number) seconds -> { n };"
    assert [c.names for c in complete(grammar, "wait").properties] == [("n",)]
    assert [c.names for c in complete(grammar, "wait long").properties] == [("n",)]
    assert words(complete(grammar, "wait 12")) == ["seconds"]
    back = complete(grammar, "wait 12", "backward")
    assert [c.names for c in back.properties] == [("n",)]


def test_an_escaped_space_belongs_to_a_word() -> None:
    """A word with an escaped space is offered as one, in the author's case."""
    assert words(complete(r"<Start> = New\ York or Paris -> 1;", "")) == ["New York"]


def test_a_repetition_can_end_or_go_on() -> None:
    """Behind a repeated part both the next part and another repetition are offered."""
    grammar = "<Start> = go (very)* far -> 1;"
    assert words(complete(grammar, "go")) == ["very", "far"]
    assert sorted(words(complete(grammar, "go very very"))) == ["far", "very"]


def test_a_text_that_is_too_long_is_refused() -> None:
    """A text beyond the limit of sentences is refused."""
    with pytest.raises(SentenceError, match="at most 2000"):
        complete(MUSIC, "hum " * 501)


def test_an_unknown_direction_is_refused() -> None:
    """A direction that does not exist is an error that names it."""
    with pytest.raises(ValueError, match="sideways"):
        complete(MUSIC, "hum", "sideways")


def test_a_deep_grammar_is_completed() -> None:
    """A rule that nests a hundred times is completed."""
    grammar = "<Start> = <A> -> 1; <A> = ( <A> ) b | a;".replace("( <A> )", "c <A>")
    assert words(complete(grammar, "c " * 100 + "a")) == ["b"]


GRAMMARS = (
    MUSIC,
    MOVE,
    "<Start> = (please)? (go | walk) (very)* far $(n:number)? -> 1 | 打开 文件 -> 2;",
    "<Start> = tell <Who> that $(what) -> { what }; <Who> = Ann | Bo | the (old)? man;",
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GRAMMARS), st.data())
def test_offered_words_lead_to_a_sentence(text: str, data: st.DataObject) -> None:
    """Words that completion offers, one after the other, and any text for a capture, build a
    sentence that the grammar reads.
    """
    grammar = load(text)
    sentence = ""
    for _ in range(20):
        completion: Any = grammar.complete(sentence + " " if sentence else "")
        if grammar.match(sentence):
            break
        choices = words(completion) + ["lamp"] * len(completion.properties)
        choices = [word for word in choices if sentence.split().count(word) < 3]
        assert choices, sentence
        separator = " " if sentence else ""
        place = completion.matched_prefix_length
        sentence = sentence[:place] + separator + data.draw(st.sampled_from(choices))
        sentence = sentence.replace("far lamp", "far 7")
    assert grammar.match(sentence)
