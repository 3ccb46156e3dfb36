"""The best reading: ranking, boundaries of words, entities, adjacent captures, speed."""

from __future__ import annotations

import time

import pytest
from uncaged_dispatcher.grammar import SentenceError, load


def best(grammar: str, sentence: str) -> object:
    """Return the value of the best reading, or None."""
    reading = load(grammar).best(sentence)
    return None if reading is None else reading.value


@pytest.mark.parametrize(
    ("grammar", "sentence", "value"),
    [
        ("<Start> = show $(x) -> x | show me all -> 1;", "show me all", 1),
        ("<Start> = find $(x) -> x | find $(x) in $(y) -> [x, y];", "find a in b", ["a", "b"]),
        ("<Start> = find (all)? $(x) -> 1 | find all $(x) -> 2;", "find all dogs", 2),
        ("<Start> = find $(x) -> 1 | find (all)? $(x) -> 2;", "find all dogs", 2),
        ("<Start> = $(x) $(y)? -> 1 | $(x) -> 2;", "dogs", 1),
        ("<Start> = set $(x) -> x | set $(n:number) -> n;", "set 12", 12),
        ("<Start> = a $(x) -> 1 | a $(y) -> 2;", "a b", 1),
    ],
)
def test_readings_have_an_order(grammar: str, sentence: str, value: object) -> None:
    """No free text goes before more parts outside of optional groups, these before more parts,
    these before less free text; among equals the first rule is the best.
    """
    assert best(grammar, sentence) == value


@pytest.mark.parametrize(
    ("sentence", "value"),
    [("dir downloads", "downloads"), ("directions to the airport", None), ("dirt", None)],
)
def test_a_word_is_read_whole(sentence: str, value: object) -> None:
    """A word of a grammar is not read from the beginning of a longer word."""
    assert best("<Start> = dir $(path) -> path;", sentence) == value


def test_a_capture_ends_at_the_boundary_of_a_word() -> None:
    """A capture does not end inside a word in the best reading, and does in the list of all."""
    grammar = load("<Start> = play $(x) by $(y) -> [x, y];")
    reading = grammar.best("play standby by by")
    assert reading is not None
    assert reading.value == ["standby", "by"]
    assert grammar.best("play standby") is None
    assert grammar.best("play goodby you") is None
    assert [r.value for r in grammar.match("play goodby you")] == [["good", "you"]]


def test_both_readings_of_an_ambiguous_sentence_are_ranked() -> None:
    """Readings of equal rank are both listed, the shorter first capture first."""
    readings = load("<Start> = play $(x) by $(y) -> [x, y];").ranked("play stand by me by ben")
    assert [r.value for r in readings] == [["stand", "me by ben"], ["stand by me", "ben"]]
    assert readings[0].rank == readings[1].rank


def test_quotes_around_a_captured_value_are_no_part_of_it() -> None:
    """Quotes of each kind around a text are taken off."""
    for quoted in ('"red car"', "'red car'", "“red car”", "«red car»"):
        assert best("<Start> = find $(x) -> x;", f"find {quoted}") == "red car"


def test_adjacent_captures_divide_at_space() -> None:
    """Two captures in a row share the words between them, the first taking the fewest; an entity
    takes the words that name one.
    """
    assert best("<Start> = copy $(a) $(b) -> [a, b];", "copy a.txt b.txt") == ["a.txt", "b.txt"]
    grammar = """import { CalendarDate, CalendarTime };
        <Start> = meet $(who) $(day:CalendarDate) $(at:CalendarTime) -> [who, day, at];"""
    assert best(grammar, "meet Ann Lee next monday 3pm") == [
        "Ann Lee",
        {"text": "next monday"},
        {"hours24": 15, "minutes": 0},
    ]


def test_an_entity_must_be_one() -> None:
    """A reading whose entity names none is not read; the next one is."""
    grammar = "import { Ordinal }; <Start> = play the $(n:Ordinal) -> n | play $(x) -> x;"
    assert best(grammar, "play the third") == 3
    assert best(grammar, "play the wall") == "the wall"


def test_an_entity_of_another_type_is_left_to_the_caller() -> None:
    """A capture of a type without a reader takes any text; readers of the caller check theirs."""
    grammar = load('import { Colour } from "./types.ts"; <Start> = paint it $(c:Colour) -> c;')
    reading = grammar.best("paint it black")
    assert reading is not None
    assert (reading.value, reading.entities[0].value) == ("black", None)
    checked = grammar.best("paint it black", entities={"Colour": {"black": 0}.__getitem__})
    assert checked is not None
    assert (checked.value, checked.rank.has_free_text) == (0, False)


def test_a_value_that_cannot_be_computed_is_passed_over() -> None:
    """The best reading is the best of those that have a value."""
    grammar = "<Start> = add $(v:<V>) -> v + 1 | add $(x) -> x; <V> = one -> 1 | two -> true;"
    assert best(grammar, "add one") == 2
    assert best(grammar, "add two") == "two"
    inner = "<Start> = <A> -> 1; <A> = ignored;"
    assert best(inner, "ignored") == 1


@pytest.mark.slow
def test_many_alternatives_are_read() -> None:
    """A sentence is read by one of 20,000 rules; only those whose words it holds are tried."""
    grammar = load(
        f"<Start> = {' | '.join(f'open item{chr(97 + n % 26)} {n} -> {n}' for n in range(20_000))};"
    )
    reading = grammar.best("open itemb 10011")
    assert reading is not None
    assert reading.value == 10011
    assert grammar.best("open itemc 10011") is None


CHAINS = " ".join(f"$(v{n}) a" for n in range(12))
WORST = {
    "captures in a row": f"<Start> = {' '.join(f'$(v{n})' for n in range(12))} end -> 1;",
    "captures between words": f"<Start> = {CHAINS} end -> 1;",
    "nested repetitions": "<Start> = (((a | a a)* (a)*)* | $(x) (a)*)* end -> 1;",
    "recursion on both sides": "<Start> = <A> end -> 1; <A> = a <A> <A> | a | $(x) a;",
    "long alternatives": f"<Start> = ({'|'.join('$(v) a' + ' a' * n for n in range(300))}) end -> 1;",
    "empty rules": "<Start> = <R0> end -> 1;"
    + "".join(f"<R{n}> = (<R{n + 1}>)? (<R{n + 1}>)?;" for n in range(30))
    + "<R30> = (a)? ($(x))?;",
}


@pytest.mark.slow
@pytest.mark.parametrize("grammar", WORST.values(), ids=WORST)
@pytest.mark.parametrize("last", ["end", "b"])
def test_the_worst_sentence_ends_soon(grammar: str, last: str) -> None:
    """A sentence of 2,000 characters is read, or refused for its work, within seconds of CPU on a
    busy machine (one second on an idle one).
    """
    compiled = load(grammar)
    # With "b" the sentence has the word that all alternatives require, but not at its end.
    sentence = "a " * 994 + ("end" if last == "end" else "end b")
    begun = time.process_time()
    try:
        reading = compiled.best(sentence)
    except SentenceError as refused:
        assert "too many possible readings" in str(refused)
    else:
        assert (reading is not None) == (last == "end")
    assert time.process_time() - begun < 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "again", ["[...x]", "[{...x[0]}]", "x.concat([]).reverse()", "x.join(',').split(',')"]
)
def test_making_large_values_is_work(again: str) -> None:
    """An expression that makes another large value at each level ends at the limit of work, and
    is read for a small value.
    """
    rules = f"<Start> = $(x:<r>) -> typeof x; <r> = please $(x:<r>) -> {again}"
    sentence = " ".join(["please"] * 280)
    small, large = (
        f"[{{{', '.join(f'k{number}: 1' for number in range(count))}}}]"
        if "{" in again
        else f"[{', '.join(['1'] * count)}]"
        for count in (2, 9000)
    )
    assert best(f"{rules} | please -> {small};", sentence) == "object"
    with pytest.raises(SentenceError, match="too many possible readings"):
        best(f"{rules} | please -> {large};", sentence)
