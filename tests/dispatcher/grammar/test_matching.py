"""All readings of a sentence: spacing, captures, repetitions, options, limits."""

from __future__ import annotations

import time

import pytest
from uncaged_dispatcher.grammar import SentenceError, load
from uncaged_dispatcher.grammar.choices import MAX_READINGS


def values(grammar: str, sentence: str, **choices: str) -> list[object]:
    """Return the values of all readings."""
    return [reading.value for reading in load(grammar).match(sentence, **choices)]


@pytest.mark.parametrize(
    ("spacing", "sentence", "read"),
    [
        ("auto", "copy file", True),
        ("auto", "copyfile", False),
        ("auto", "copy, FILE!", True),
        ("required", "copy file", True),
        ("required", "copyfile", False),
        ("optional", "copyfile", True),
        ("optional", "copy - file", True),
        ("none", "copyfile", True),
        ("none", "copy file", False),
    ],
)
def test_spacing_decides_about_separators(spacing: str, sentence: str, read: bool) -> None:
    """Words are apart as the spacing of their rule demands; case does not matter."""
    assert values(f"<Start> [spacing={spacing}] = copy file -> true;", sentence) == [True] * read


@pytest.mark.parametrize(
    ("grammar", "sentence", "read"),
    [
        ("<Start> = 打开 文件 -> true;", "打开文件", True),
        ("<Start> = открой файл -> true;", "откройфайл", False),
        ("<Start> = ファイル を 開く -> true;", "ファイルを開く", True),
        ("<Start> = फ़ाइल खोलो -> true;", "फ़ाइलखोलो", False),
        ("<Start> = افتح الملف -> true;", "افتح الملف", True),
        ("<Start> = line 10 of 12 -> true;", "line10of12", True),
        ("<Start> = 10 12 -> true;", "1012", False),
    ],
)
def test_scripts_decide_about_automatic_spacing(grammar: str, sentence: str, read: bool) -> None:
    """Automatic spacing wants a separator between letters of scripts with space between words and
    between digits, and nowhere else.
    """
    assert values(grammar, sentence) == [True] * read


def test_the_rule_around_decides_about_the_space_before_a_rule() -> None:
    """Space before the first word of a rule follows the rule that refers to it; the end of its
    last word follows its own.
    """
    glued = "<Start> [spacing=none] = go <Where> -> 1; <Where> = home;"
    assert values(glued, "gohome") == [1]
    assert values(glued, "go home") == []
    apart = "<Start> [spacing=optional] = <Verb> home -> 1; <Verb> [spacing=required] = go;"
    assert values(apart, "gohome") == []
    assert values(apart, "go home") == [1]


def test_each_length_of_a_free_capture_is_a_reading() -> None:
    """A capture ends at each place where the next part can begin, nearest first, and is trimmed of
    space and punctuation; punctuation alone is no text.
    """
    grammar = "<Start> = tell $(who) that $(what) -> { who, what };"
    readings = load(grammar).match("tell  'the one that fell' that it is over.")
    assert [r.value for r in readings] == [
        {"who": "the one", "what": "fell' that it is over"},
        {"who": "the one that fell", "what": "it is over"},
    ]
    assert [(r.matched_values, r.free_characters) for r in readings] == [(2, 28), (2, 27)]
    assert values(grammar, "tell -- that x") == []


def test_a_number_is_whole() -> None:
    """A number capture takes signs, fractions and other bases, and never a part of a number."""
    grammar = "<Start> = $(name) $(n:number) times -> [name, n];"
    assert values(grammar, "run 12.5 times") == [["run", 12.5]]
    assert values(grammar, "run -3 times") == [["run", -3]]
    assert values(grammar, "run 0x10 times") == [["run", 16]]
    assert values(grammar, "run 1e999 times") == []


def test_optional_parts_and_repetitions_are_all_tried() -> None:
    """An optional part is taken and skipped, and each count of a repetition is a reading; an empty
    repetition ends it.
    """
    assert values("<Start> = (very)? $(x) -> x;", "very good") == ["good", "very good"]
    assert values("<Start> = (very)* $(x) -> x;", "very very good") == [
        "good",
        "very good",
        "very very good",
    ]
    assert values("<Start> = ((a | b)?)+ -> 1;", "a b") == [1, 1]
    assert values("<Start> = (a)+ -> 1;", "") == []


def test_the_shortest_captures_can_be_asked_for() -> None:
    """With the shortest captures, a longer one is tried only if a shorter leads to no reading;
    rules and optional parts are all tried.
    """
    grammar = "<Start> = (all)? $(x) and $(y) -> x | $(z) -> 1;"
    sentence = "all a and b and c"
    assert values(grammar, sentence) == ["a", "a and b", "all a", "all a and b", 1]
    assert values(grammar, sentence, captures="shortest") == ["a", "all a", 1]
    number = "<Start> = $(x) $(n:number) end -> x;"
    assert values(number, "a 1 2 end", captures="shortest") == ["a 1"]


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({"optionals": "take"}, ["good"]),
        ({"optionals": "skip"}, ["very good"]),
    ],
)
def test_optional_parts_can_be_decided(choices: dict[str, str], expected: list[str]) -> None:
    """An option takes or skips an optional part wherever that leads to a reading."""
    grammar = "<Start> = (very)? $(x) -> x;"
    assert values(grammar, "very good", **choices) == expected
    assert values(grammar, "very", **choices) == ["very"]
    assert values(grammar, "good", **choices) == ["good"]


@pytest.mark.parametrize(
    ("choices", "expected"),
    [({"repeats": "greedy"}, ["good"]), ({"repeats": "reluctant"}, ["very very good"])],
)
def test_repetitions_can_be_decided(choices: dict[str, str], expected: list[str]) -> None:
    """An option repeats as often or as rarely as leads to a reading."""
    grammar = "<Start> = (very)* $(x) -> x;"
    assert values(grammar, "very very good", **choices) == expected
    assert values("<Start> = (very)+ good -> 1;", "very very good", **choices) == [1]


def test_an_unknown_option_is_refused() -> None:
    """An option that does not exist is an error that names it."""
    with pytest.raises(ValueError, match="longest"):
        load("<Start> = a -> 1;").match("a", captures="longest")


def test_counts_are_those_of_the_values_in_use() -> None:
    """Captures that the value does not name, also of rules inside, are not counted."""
    grammar = "<Start> = $(a:<Pair>) near $(b:<Pair>) -> a; <Pair> = $(x) $(n:number) -> { x, n };"
    (reading,) = load(grammar).match("oak 12 near birch 7")
    assert (reading.value, reading.matched_values) == ({"x": "oak", "n": 12}, 2)
    assert reading.free_characters == 3


def test_entities_are_reported_and_not_checked() -> None:
    """A capture of an entity type takes any text, and is listed with its place."""
    grammar = "import { CalendarDate }; <Start> = due $(d:CalendarDate) sharp -> d;"
    (reading,) = load(grammar).match("due some day sharp")
    (entity,) = reading.entities
    assert (entity.type, entity.variable, entity.text, entity.start) == (
        "CalendarDate",
        "d",
        "some day",
        4,
    )
    assert reading.value == "some day"


def test_a_reading_without_a_value_is_left_out() -> None:
    """A value that cannot be computed for a reading leaves the other readings."""
    grammar = "<Start> = add $(v:<V>) -> v + 1 | add $(x) -> x; <V> = one -> 1 | two -> true;"
    assert values(grammar, "add one") == [2, "one"]
    assert values(grammar, "add two") == ["two"]


def test_a_list_of_readings_is_cut() -> None:
    """Beyond 10,000 readings the list is cut and says so; a complete list says that, too."""
    grammar = load("<Start> = $(a) x $(b) x $(c) -> [a, b, c];")
    many = grammar.match("a x " * 300 + "a")
    assert many.cut
    assert 0 < len(many) <= MAX_READINGS
    few = grammar.match("a x b x c")
    assert not few.cut
    assert len(few) == 1


def test_a_search_without_end_is_refused() -> None:
    """A search that finds nothing within its limit of work is refused, and soon."""
    rules = "".join(f"<R{n}> = (<R{n + 1}>)? (<R{n + 1}>)?;" for n in range(24))
    grammar = load(f"<Start> = <R0> end -> 1; {rules} <R24> = (a)?;")
    begun = time.process_time()
    with pytest.raises(SentenceError, match="too many possible readings"):
        grammar.match("b")
    assert time.process_time() - begun < 5


def test_deep_recursion_has_no_limit_but_work() -> None:
    """A rule that nests hundreds of times in a sentence is read; its depth is no error."""
    grammar = load("<Start> = <A> -> 1; <A> = a <A> b | a b;")
    sentence = "a " * 499 + "b " * 499
    (reading,) = grammar.match(sentence)
    best = grammar.best(sentence)
    assert best == reading
