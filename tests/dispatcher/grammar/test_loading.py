"""Loading of grammars: imports, names, implicit values, loops, unused rules and limits."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_dispatcher.grammar import GrammarError, limits, load, parse
from uncaged_dispatcher.grammar.loading import Loaded, load_rules
from uncaged_dispatcher.grammar.phrases import PHRASES
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Expression,
    Group,
    Literal,
    PartValue,
    Repeat,
    Spacing,
    Variable,
)

Places = list[tuple[int, int]]


def errors(text: str, files: Mapping[str, str] | None = None) -> Places:
    with pytest.raises(GrammarError) as refused:
        load_rules(text, files=files)
    return [(problem.line, problem.column) for problem in refused.value.problems]


def warnings(text: str, files: Mapping[str, str] | None = None) -> list[tuple[str, int, int]]:
    return [(p.file, p.line, p.column) for p in load_rules(text, files=files).warnings]


def rule_names(loaded: Loaded) -> list[str]:
    return [rule.name for rule in loaded.rules.rules]


def start_value(alternative: str) -> Expression | None:
    rules = load_rules(
        f"<Start> = {alternative}; <Tea> = green -> 1 | black -> 2;", start_value_required=False
    ).rules
    return rules.rules[rules.start].alternatives[0].value


@pytest.mark.parametrize(
    ("alternative", "value"),
    [
        ("pour it", PartValue(0)),
        ("pour $(what)", Variable("what")),
        ("pour $(what)?", Variable("what")),
        ("$(tea:<Tea>) please", Variable("tea")),
        ("<Tea>", PartValue(0)),
        ("(green -> 1 | black -> 2)", PartValue(0)),
        ("pour <Tea> now", PartValue(1)),
        ("pour <Tea> <Tea>", None),
        ("$(a) and $(b)", None),
    ],
)
def test_an_alternative_without_a_value_has_an_implicit_one(
    alternative: str, value: Expression | None
) -> None:
    """The only variable, group, reference or text is the value; several variables have none."""
    assert start_value(alternative) == value


def test_spacing_is_inherited_from_outside() -> None:
    """An alternative has its own spacing, else that of its rule; a group has that around it."""
    loaded = load_rules(
        "<Start> [spacing=none] = (a | [spacing=required] (b)?) | [spacing=auto] (c)*;"
    )
    first, second = loaded.rules.rules[loaded.rules.start].alternatives
    literal = {name: Alternative((Literal((name,)),), value=PartValue(0)) for name in "abc"}

    def spaced(name: str, spacing: Spacing) -> Alternative:
        return Alternative(literal[name].parts, spacing, PartValue(0))

    required = Alternative(
        (Group((spaced("b", Spacing.REQUIRED),), Repeat.OPTIONAL),), Spacing.REQUIRED, PartValue(0)
    )
    assert first == Alternative(
        (Group((spaced("a", Spacing.NONE), required)),), Spacing.NONE, PartValue(0)
    )
    assert second == Alternative(
        (Group((spaced("c", Spacing.AUTO),), Repeat.ANY),), Spacing.AUTO, PartValue(0)
    )


def test_definitions_of_one_name_are_merged() -> None:
    """A rule that is defined twice has the alternatives of both, each with its own spacing."""
    loaded = load_rules("<Start> [spacing=none] = a; <Start> = b | c;")
    (rule,) = loaded.rules.rules
    assert [alternative.spacing for alternative in rule.alternatives] == ["none", "auto", "auto"]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("<Tea> = green;", [(1, 1)]),
        ("<Start> = <Tea>;", [(1, 11)]),
        ("<Start> = $(a) $(a) -> a;", [(1, 18)]),
        ("<Start> = $(a) ($(a)) -> a | $(a) -> a;", []),
        ("<Start> = $(a) -> {a, b};", [(1, 23)]),
        ("<Start> = pour ($(a))? -> a;", [(1, 27)]),
        ("<Start> = $(a:Leaf);", [(1, 15)]),
        ("import {Leaf};<Start> = $(a:Leaf) $(b:CalendarDate) $(c:word) -> [a, b, c];", []),
        ("<Start> : Tea = a;", [(1, 11)]),
        ("import {Tea} from 'tea.ts'; <Start> : Tea | string = a;", []),
        ("import * from 'tea.ts'; <Start> : Tea = $(a:Leaf);", []),
        ("<Start> = $(a) $(b);", [(1, 1)]),
        ("<Start> = a <X>; <X> = $(a) $(b);", [(1, 1)]),
        ("<Start> = $(x:<X>) -> 1; <X> = a -> 1 | $(a) $(b);", [(1, 15)]),
        ("<Start> = <X> -> 1; <X> = $(a) $(b);", []),
    ],
)
def test_errors_of_names_and_values_have_their_places(text: str, places: Places) -> None:
    """Missing rules, types, variables and values, and variables captured twice, are errors."""
    if places:
        assert errors(text) == places
    else:
        load_rules(text)


def test_all_errors_are_found_at_once() -> None:
    """One attempt to load reports the errors of all rules."""
    assert errors("<Start> = <A> $(x:Leaf);\n<B> = $(x) -> y;") == [(1, 11), (1, 19), (2, 15)]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("<Start> = <Start> tea;", [(1, 11)]),
        ("<Start> = a | (sugar)? <Tea> -> 1; <Tea> = $(x:number)? <Start>;", [(1, 57)]),
        ("<Start> = a <Tea>; <Tea> = b | (<Milk>)*; <Milk> = (no)? (x | <Tea> y) -> 1;", [(1, 63)]),
        ("<Start> = ((<Start>)+)? a;", [(1, 13)]),
        ("<Start> = a <Start> | b;", []),
        ("<Start> = $(n:number) <Start> -> n | b;", []),
        ("<Start> = ((a)?)* -> 1;", []),
        ("<Start> = <Tea> <Start> -> 1 | b; <Tea> = (x)+;", []),
        ("<Start> = <Tea> <Start> -> 1 | b; <Tea> = (x)*;", [(1, 17)]),
    ],
)
def test_a_rule_that_reaches_itself_without_text_is_an_error(text: str, places: Places) -> None:
    """Left recursion and empty cycles are errors at the reference that closes the cycle."""
    if places:
        assert errors(text) == places
    else:
        load_rules(text)


FILES = {
    "menu/tea.agr": 'import { Cup } from "../cups.agr"; export <Tea> = green <Cup> -> 1; <Secret> = a;',
    "cups.agr": 'import { Start } from "main.agr"; export <Cup> = cup | (<Start> again)?;',
}


def test_imports_follow_the_folders_of_their_files() -> None:
    """Imported rules come from files relative to the importing one, also in a circle."""
    text = 'import { Tea } from "./menu/tea.agr"; export <Start> = drink <Tea>; <Tiny> = <Tea>;'
    loaded = load_rules(text, files=FILES)
    assert rule_names(loaded) == ["Start", "Tea", "Cup"]
    start, tea, cup = loaded.rules.rules
    assert start.targets["Tea"] == 1
    assert tea.targets["Cup"] == 2
    assert cup.targets["Start"] == 0
    assert warnings(text, FILES) == [("main.agr", 1, 69), ("menu/tea.agr", 1, 69)]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('import { Cup } from "cup.agr"; <Start> = <Cup>;', 8),
        ('import { Secret } from "menu/tea.agr"; <Start> = <Secret>;', 8),
        ('import { Mate } from "menu/tea.agr"; <Start> = a;', 8),
        ('import { Tea } from "menu/tea.agr"; <Tea> = x; <Start> = <Tea>;', 8),
        ('import * from "menu/tea.agr"; <Tea> = x; <Start> = <Tea>;', 8),
        ('import * from "menu/tea.agr"; import { Tea } from "menu/tea.agr"; <Start> = <Tea>;', 38),
        ("import { A }; import { A } from 'a.ts'; <Start> = $(x:A);", 22),
        ('import * from "../../etc/passwd.agr"; <Start> = a;', 8),
    ],
)
def test_an_import_that_finds_nothing_or_clashes_is_an_error(text: str, column: int) -> None:
    """Missing files, rules that are not exported, and names that exist already are errors."""
    places = errors(text, FILES)
    assert places[0] == (1, column)


def test_an_error_names_the_imported_file() -> None:
    """An error in an imported file has that file's name and place."""
    with pytest.raises(GrammarError) as refused:
        load_rules('import * from "b/c.agr"; <Start> = a;', files={"b/c.agr": "\n<X> = ;"})
    (problem,) = refused.value.problems
    assert (problem.file, problem.line, problem.column) == ("b/c.agr", 2, 7)


def test_a_grammar_may_import_itself() -> None:
    """A grammar that imports its own names clashes; one that imports nothing by it loads."""
    load_rules('import * from "./main.agr"; <Start> = a;')
    assert errors('import * from "./main.agr"; export <Start> = a;') == [(1, 8)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("import { Leaf }; <Start> = a;", [8]),
        ("import { Leaf } from 'leaf.ts'; <Start> = a;", [8]),
        ("import * from 'cups.agr'; export <Start> = a;", [8]),
        ("<Start> = a; <Left> = <Right>; <Right> = b <Left> | c;", [14, 32]),
        ("<Start> = a; export <Left> = b;", []),
        ("<Start> = <X> -> 1; <X> = $(a) $(b);", [27]),
        ("<Start> = (x $(a) $(b)) -> 1;", [12]),
    ],
)
def test_unused_names_and_unclear_values_are_warnings(text: str, columns: list[int]) -> None:
    """Unused rules and imports and several variables without a value are warnings, no errors."""
    assert [column for file, _, column in warnings(text, FILES) if file == "main.agr"] == columns


@pytest.mark.parametrize("name", PHRASES)
def test_a_phrase_set_is_a_rule_of_every_grammar(name: str) -> None:
    """A phrase set has its phrases longest first, unless the grammar has a rule of its name."""
    loaded = load_rules(f"<Start> = <{name}> tea;")
    phrases = loaded.rules.rules[loaded.rules.rules[0].targets[name]]
    lengths = [
        len(part.words)
        for a in phrases.alternatives
        for part in a.parts
        if isinstance(part, Literal)
    ]
    assert lengths == sorted(lengths, reverse=True)
    own = load_rules(f"<Start> = <{name}> tea; <{name}> = dear;")
    assert len(own.rules.rules[own.rules.rules[0].targets[name]].alternatives) == 1


def test_entities_are_the_types_that_need_a_resolver() -> None:
    """The entities of a grammar are its types but for free text and numbers."""
    text = "import {Leaf}; <Start> = $(a:Leaf) $(b:number) $(c) $(d:CalendarTime) -> 1;"
    assert load_rules(text).rules.entities == {"Leaf", "CalendarTime"}


def test_errors_beyond_the_limit_are_counted() -> None:
    """A grammar with more errors than the limit lists the first ones and counts the rest."""
    with pytest.raises(GrammarError) as refused:
        load_rules("<Start> = " + "<A> " * 150 + ";")
    assert len(refused.value.problems) == limits.MAX_PROBLEMS
    assert refused.value.problems[-1].message.endswith("; and 51 more errors")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<Start> = a;\n" * 100_000, " 1,000,000 "),
        ("<Start> = " + "(" * 5000 + "a" + ")" * 5000 + ";", "nested more than 40 deep"),
        ("<Start> = " + "(" * 5000, "nested more than 40 deep"),
        ("/* " * 100_000, "has no end"),
    ],
)
def test_a_grammar_beyond_a_limit_is_refused(text: str, reason: str) -> None:
    """A grammar that is too long or too deep gets an error that names the limit."""
    with pytest.raises(GrammarError, match=reason):
        load_rules(text)
    with pytest.raises(GrammarError, match=reason):
        parse(text)


@pytest.mark.slow
def test_imports_beyond_a_limit_are_refused() -> None:
    """Files that import each other's names by the million are refused before they fill memory."""
    everything = "".join(f'import * from "f{i}.agr";' for i in range(60))
    files = {
        f"f{i}.agr": everything + "".join(f"export <R{i}x{j}> = a;" for j in range(60))
        for i in range(60)
    }
    with pytest.raises(GrammarError, match="import more than 50,000 rules"):
        load_rules(everything + "<Start> = a;", files=files)


@pytest.mark.slow
def test_long_chains_of_rules_need_no_recursion() -> None:
    """Chains of thousands of rules are checked like short ones."""
    chain = "".join(f"<R{i}> = <R{i + 1}>;" for i in range(5000))
    load_rules(f"<Start> = <R0>;{chain}<R5000> = x;")
    assert errors(f"<Start> = <R0>;{chain}<R5000> = <R0>;") == [
        (1, len(f"<Start> = <R0>;{chain}") + 11)
    ]


GRAMMAR_TEXT = st.lists(
    st.sampled_from(
        [
            *"<>()[]{}|;$=:?*+-\\/\"'`.,!&% \n",
            *(
                "<Start>",
                "<A>",
                " = ",
                "$(x)",
                "$(x:number)",
                "->",
                "word",
                "export",
                "import",
                "from",
            ),
            *(
                "spacing",
                "none",
                "/*",
                "*/",
                "//",
                "${",
                "?.",
                "??",
                "...",
                "typeof",
                "12",
                "0x",
                "true",
            ),
        ]
    )
).map("".join)


@pytest.mark.slow
@given(st.one_of(st.text(), GRAMMAR_TEXT, GRAMMAR_TEXT.map("<Start> = a -> {}; ".__add__)))
def test_any_text_loads_or_is_refused_with_a_place_inside_it(text: str) -> None:
    """Any text is a grammar, or raises a `GrammarError` whose places are in the text."""
    try:
        load(text, files={"a.agr": text})
    except GrammarError as error:
        assert error.problems
        lines = text.split("\n")
        for problem in error.problems:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert problem.message
