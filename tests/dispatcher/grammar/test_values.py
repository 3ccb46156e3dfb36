"""Values of expressions: strict types, absent captures, methods, numbers as text, and limits."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_dispatcher.grammar import GrammarError
from uncaged_dispatcher.grammar.loading import load_rules
from uncaged_dispatcher.grammar.numbers import number_text
from uncaged_dispatcher.grammar.syntax import UNDEFINED
from uncaged_dispatcher.grammar.values import EvaluationError, evaluate

OBJECT = {"leaf": {"size": 3}, "null": None}
VARIABLES = {
    "text": "Green Tea",
    "number": 7,
    "list": ["b", 2, None],
    "object": OBJECT,
}
CAPTURES = "$(text) $(number:number) $(list:<List>) $(object:<Object>) $(absent)? $(nope:number)? $(gone:<Object>)? $(lost:<List>)?"
RULES = "<List> = a -> ['b', 2, null]; <Object> = a -> {leaf: {size: 3}, null: null};"


def evaluated(text: str) -> object:
    rules = load_rules(f"<Start> = {CAPTURES} -> {text}; {RULES}").rules
    value = rules.rules[rules.start].alternatives[0].value
    assert value is not None
    return evaluate(value, VARIABLES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("number + 2 * 3", 13),
        ("number / 2", 3.5),
        ("8 / 2", 4),
        ("-number % 4", -3),
        ("text + '!'", "Green Tea!"),
        ("number > 6 && !(number >= 8)", True),
        ("text < 'Grey'", True),
        ("number === 7 || text === 'x'", True),
        ("number === '7'", False),
        ("1 === true", False),
        ("list[2] === null", True),
        ("number !== 7 ? 'a' : number < 9 ? 'b' : 'c'", "b"),
        ("`${number} of ${text}, ${0.1 + 0.2} ${true} ${null}`", "7 of Green Tea, 0.30000000000000004 true null"),
        ("{number, ...object, extra: [...list, 1]}", {"number": 7, **OBJECT, "extra": ["b", 2, None, 1]}),
        ("object.leaf.size", 3),
        ("object['leaf']", {"size": 3}),
        ("object.null?.size ?? 'none'", "none"),
        ("[list[0], list[-1] ?? 'x', text[1], list.length, text.length]", ["b", "x", "r", 3, 9]),
        ("[typeof text, typeof list, typeof null, typeof absent]", ["string", "object", "object", "undefined"]),
        ("[text.toUpperCase(), ' a '.trim(), 'a-b'.split('-'), [1, 'b'].join()]", ["GREEN TEA", "a", ["a", "b"], "1,b"]),
        ("['abc'.slice(-2), 'abc'.substring(2, 0), 'abc'.at(-1), 'abc'.charAt(9), [1, 2, 3].slice(1)]", ["bc", "ab", "c", "", [2, 3]]),
        ("['ab'.repeat(2), '7'.padStart(3, '0'), 'a'.padEnd(4, 'xy'), 'aa'.replace('a', 'b')]", ["abab", "007", "axyx", "ba"]),
        ("'aa'.replaceAll('a', 'b')", "bb"),
        ("[text.includes('Tea'), text.startsWith('G'), text.endsWith('G'), text.indexOf('e')]", [True, True, False, 2]),
        ("text.lastIndexOf('e')", 7),
        ("[[1, 2].includes(2), [1, 'a'].indexOf('a'), [1, 2, 1].lastIndexOf(1)]", [True, 1, 2]),
        ("[[1].concat([2], [3]), [1, 2].reverse()]", [[1, 2, 3], [2, 1]]),
        ("[(2.5).toFixed(), (1.005).toFixed(2), number.toString(), true.toString()]", ["3", "1.00", "7", "true"]),
        ("9007199254740993 * 10", 90071992547409920.0),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(text: str, value: object) -> None:
    """Operators, methods and templates give the values of the language."""
    result = evaluated(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("absent", UNDEFINED),
        ("{absent, number}", {"number": 7}),
        ("[absent, number]", [None, 7]),
        ("{...gone, a: [...lost]}", {"a": []}),
        ("absent ?? 'no tea'", "no tea"),
        ("nope + 1", UNDEFINED),
        ("-nope", UNDEFINED),
        ("absent.toUpperCase()", UNDEFINED),
        ("absent?.length", UNDEFINED),
        ("text.slice(nope)", UNDEFINED),
        ("text[nope]", UNDEFINED),
        ("nope > 1 ? 'a' : 'b'", "b"),
        ("nope > 1 || number > 1", True),
        ("absent === undefined", True),
        ("`${absent}.`", "."),
    ],
)
def test_a_capture_that_was_not_taken_is_absent_and_no_error(text: str, value: object) -> None:
    """An absent operand makes a result absent, a condition false, and a property missing."""
    assert evaluated(text) == value


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("number + 'a'", 7),
        ("text * 2", 5),
        ("text < number", 5),
        ("true + true", 5),
        ("-text", 0),
        ("!number", 1),
        ("text ? 1 : 2", 0),
        ("text || true", 0),
        ("number > 1 && text", 14),
        ("`${list}`", 3),
        ("{...text}", 1),
        ("[...number]", 1),
        ("text.size", 5),
        ("number.length", 7),
        ("text.toFixed(2)", 5),
        ("text.slice('a')", 5),
        ("text.includes()", 5),
        ("text.trim(1)", 5),
        ("(number > 1 ? 'a' : 'b') - 1", 25),
        ("list.join(1)", 5),
    ],
)
def test_a_value_that_can_only_fail_is_an_error_of_the_grammar(text: str, operand: int) -> None:
    """Operands that never fit an operator are refused when the grammar is loaded."""
    with pytest.raises(GrammarError) as refused:
        evaluated(text)
    (problem,) = refused.value.problems
    assert problem.column == len(f"<Start> = {CAPTURES} -> ") + operand + 1


@pytest.mark.parametrize(
    "text",
    [
        "object.leaf + 1",
        "object.leaf ? 1 : 2",
        "-object.leaf",
        "object.null.size",
        "object.leaf.size.trim()",
        "object.leaf[0]",
        "`${object.leaf}`",
        "[...object.leaf]",
        "{...object.leaf.size}",
        "list[0] * list[1]",
        "text.repeat(-1)",
        "text.repeat(1e9)",
        "'a'.padEnd(1e12)",
        "number.toFixed(200)",
        "text.split('').join(object.leaf)",
    ],
)
def test_a_value_of_another_kind_is_an_evaluation_error(text: str) -> None:
    """Operands whose kind only the sentence shows are checked when the value is made."""
    with pytest.raises(EvaluationError):
        evaluated(text)


def test_a_value_that_doubles_with_each_rule_is_refused() -> None:
    """Values that rules build from each other end at a limit before they fill memory."""
    rules = load_rules("<Start> = $(x:<Start2>) -> [x, x]; <Start2> = a -> [1, 2];").rules
    expression = rules.rules[rules.start].alternatives[0].value
    assert expression is not None
    value: object = [1, 2]
    with pytest.raises(EvaluationError, match="more than 10,000 items"):
        for _ in range(40):
            value = evaluate(expression, {"x": value})
    assert len(json.dumps(value)) < 1_000_000


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_number_reads_as_the_number(value: float) -> None:
    """The text of a number is the shortest that reads as the same number."""
    assert float(number_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-7"),
        (0.000001, "0.000001"),
        (-3.0, "-3"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_in_json(value: float, text: str) -> None:
    """A number has an exponent only when it is very large or very small."""
    assert number_text(value) == text
