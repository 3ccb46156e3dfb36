"""Syntax of grammar files: rules, alternatives, imports, and the places of errors."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar import GrammarError, parse
from uncaged_dispatcher.grammar.parsing import parse_file
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Capture,
    Group,
    ImportStatement,
    Literal,
    Name,
    Repeat,
    Rule,
    RuleCapture,
    RuleRef,
    SourceText,
    Spacing,
    Variable,
)


def only_rule(text: str) -> Rule:
    (rule,) = parse_file(SourceText("kitchen.agr", text)).rules
    return rule


def words(text: str) -> tuple[str, ...]:
    (alternative,) = only_rule(f"<Start> = {text};").alternatives
    (literal,) = alternative.parts
    assert isinstance(literal, Literal)
    return literal.words


def test_a_rule_has_its_parts_in_order() -> None:
    """A rule has export, spacing, types and alternatives with all kinds of parts."""
    rule = only_rule(
        "export <Boil> [spacing=optional] : Boil | Heat = [spacing=none] boil $(n:number)? (an | one)* "
        "<Food> $(how:<Way>) -> how | $(what);"
    )
    assert rule == Rule(
        "Boil",
        (
            Alternative(
                (
                    Literal(("boil",)),
                    Capture("n", "number", optional=True),
                    Group(
                        (Alternative((Literal(("an",)),)), Alternative((Literal(("one",)),))),
                        Repeat.ANY,
                    ),
                    RuleRef("Food"),
                    RuleCapture("how", "Way"),
                ),
                Spacing.NONE,
                Variable("how"),
            ),
            Alternative((Capture("what"),)),
        ),
        Spacing.OPTIONAL,
        (Name("Boil"), Name("Heat")),
        exported=True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("peel   the\n potato", ("peel", "the", "potato")),
        ("peel/*, then*/potato", ("peel", "potato")),
        ("peel//, then\npotato", ("peel", "potato")),
        ("and/or 1/2", ("and/or", "1/2")),
        (r"salt\ and pepper", ("salt and", "pepper")),
        (r"\<b\> 5\-minute \$5 \\", ("<b>", "5-minute", "$5", "\\")),
        (r"\x41\u00e9\u{1F375}\ud83c\udf75", ("Aé🍵🍵",)),
        (r"tab\there\0", ("tab\there\0",)),
        ("long\\\nword other", ("longword", "other")),
        (
            'what\'s up? "really" a,b: c=d + e*',
            ("what's", "up?", '"really"', "a,b:", "c=d", "+", "e*"),
        ),
        ("お茶 чай", ("お茶", "чай")),
    ],
)
def test_words_end_at_space_and_comments(text: str, expected: tuple[str, ...]) -> None:
    """Words of a literal end where the text has space or a comment; escapes are resolved."""
    assert words(text) == expected


def test_imports_are_of_entities_types_and_rules() -> None:
    """Imports name entities without a file, and rules or types with one; `*` has no names."""
    file = parse_file(
        SourceText(
            "a.agr",
            "import { Ordinal, Tea, };\nimport {A} from './b.agr'; import * from \"c.agr\";",
        )
    )
    assert file.imports == (
        ImportStatement((Name("Ordinal"), Name("Tea")), None),
        ImportStatement((Name("A"),), "./b.agr"),
        ImportStatement(None, "c.agr"),
    )


def test_parse_names_each_rule_once() -> None:
    """The names of the rules come in the order of their first definition; a start is not needed."""
    assert parse("<B> = <Missing>; <A> = x; <B> = y;") == ["B", "A"]
    assert parse(" // nothing\n") == []


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("<Tea> = green", 1, 14),
        ("<Tea> = ;", 1, 9),
        ("<Tea> = a | ;", 1, 13),
        ("<Tea> = a\n  | () ;", 2, 6),
        ("<Tea>\ngreen;", 2, 1),
        ("<> = green;", 1, 2),
        ("<Tea = green;", 1, 6),
        ("Tea = green;", 1, 1),
        ("<Tea> = a - b;", 1, 11),
        ("<Tea> = a $b;", 1, 11),
        ("<Tea> = a ] b;", 1, 11),
        ("<Tea> = a } b;", 1, 11),
        ("<Tea> = a > b;", 1, 11),
        ("<Tea> = (a;", 1, 11),
        ("<Tea> = a);", 1, 10),
        ("<Tea> = $(a;", 1, 12),
        ("<Tea> = $(a:);", 1, 13),
        ("<Tea> = $(1);", 1, 11),
        ("<Tea> = a /* b;", 1, 11),
        ("<Tea> = \\", 1, 10),
        ("<Tea> = \\x4g;", 1, 11),
        ("<Tea> = \\u12;", 1, 11),
        ("<Tea> = \\u{};", 1, 11),
        ("<Tea> = \\u{110000};", 1, 11),
        ("<Tea> = \\ud83c;", 1, 11),
        ("<Tea> [spacing=wide] = a;", 1, 20),
        ("<Tea> [space=none] = a;", 1, 8),
        ("<Tea> [spacing=none = a;", 1, 21),
        ("<Tea> : = a;", 1, 9),
        ("<Tea> = [spacing=none] | a;", 1, 24),
        ("export Tea = a;", 1, 8),
        ("import Tea;", 1, 8),
        ("import { };", 1, 10),
        ("import { A B };", 1, 12),
        ("import * ;", 1, 10),
        ("import { A } from b;", 1, 19),
        ("import { A } from 'b'", 1, 22),
        ("<Tea> = a\0b;", 1, 10),
        ("<Tea> = a\ud800;", 1, 10),
    ],
)
def test_an_error_of_syntax_has_its_place(text: str, line: int, column: int) -> None:
    """Text that is no grammar is refused with one problem at the character that does not fit."""
    with pytest.raises(GrammarError) as refused:
        parse(text, name="tea.agr")
    (problem,) = refused.value.problems
    assert (problem.file, problem.line, problem.column) == ("tea.agr", line, column)
    assert str(refused.value) == f"tea.agr({line},{column}): error: {problem.message}"
