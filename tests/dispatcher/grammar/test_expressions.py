"""Value expressions as trees: precedence, postfix operators, literals, and what is refused."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar import GrammarError
from uncaged_dispatcher.grammar.limits import MAX_EXPRESSION_DEPTH, MAX_NESTING
from uncaged_dispatcher.grammar.parsing import parse_file
from uncaged_dispatcher.grammar.syntax import (
    UNDEFINED,
    ArrayValue,
    Binary,
    Constant,
    Element,
    Expression,
    Member,
    MethodCall,
    ObjectValue,
    Property,
    SourceText,
    Spread,
    Template,
    Ternary,
    Unary,
    Variable,
)

A, B, C = Variable("a"), Variable("b"), Variable("c")


def value(text: str, *, expressions: bool = True) -> Expression:
    source = SourceText("sum.agr", f"<Start> = x -> {text};")
    (rule,) = parse_file(source, value_expressions=expressions).rules
    found = rule.alternatives[0].value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("(a - b) % c", Binary("%", Binary("-", A, B), C)),
        ("a < b === c", Binary("===", Binary("<", A, B), C)),
        ("a || b && c", Binary("||", A, Binary("&&", B, C))),
        ("a ?? (b || c)", Binary("??", A, Binary("||", B, C))),
        ("a ? b : c ? a : b", Ternary(A, B, Ternary(C, A, B))),
        ("!a !== -b", Binary("!==", Unary("!", A), Unary("-", B))),
        ("typeof a.b", Unary("typeof", Member(A, "b"))),
        ("a?.b[c]", Element(Member(A, "b", optional=True), C)),
        ("a?.[0]", Element(A, Constant(0), optional=True)),
        ("a ?.5 : 1", Ternary(A, Constant(0.5), Constant(1))),
        ("a.join(b, ...c)", MethodCall(A, "join", (B, Spread(C)))),
        ("a?.trim()", MethodCall(A, "trim", (), optional=True)),
        ("`<${a} of ${`${b}`}>`", Template(("<", " of ", ">"), (A, Template(("", ""), (B,))))),
        ("`\\`\\${'\\n`", Template(("`${'\n",), ())),
        ("[a, ...b,]", ArrayValue((A, Spread(B)))),
        (
            "{a, 'b c': 1, ...c, \"\": [],}",
            ObjectValue(
                (
                    Property("a", A),
                    Property("b c", Constant(1)),
                    Spread(C),
                    Property("", ArrayValue(())),
                )
            ),
        ),
        ("-1.50e2", Constant(-150)),
        ("0xFf", Constant(255)),
        ("0o17", Constant(15)),
        ("0b101", Constant(5)),
        ("'it\\'s'", Constant("it's")),
        (
            "[true, false, null, undefined]",
            ArrayValue(tuple(map(Constant, (True, False, None, UNDEFINED)))),
        ),
        ("a // first\n + /* then */ b", Binary("+", A, B)),
    ],
)
def test_an_expression_is_a_tree_by_precedence(text: str, expected: Expression) -> None:
    """Operators bind by their precedence, and equal ones from the left."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a ?? b || c", 23),
        ("a || b ?? c", 23),
        ("a && b ?? c", 23),
        ("a + ;", 20),
        ("a ? b;", 21),
        ("(a;", 18),
        ("a.;", 18),
        ("a[b;", 19),
        ("{a b};", 19),
        ("{1: a};", 17),
        ("{'a'};", 20),
        ("{a: b c};", 22),
        ("[a b];", 19),
        ("1tea;", 17),
        ("0xg;", 17),
        ("1e999;", 16),
        ("'open;", 22),
        ("'line\n';", 21),
        ("`open ${a", 25),
        ("a == b;", 18),
    ],
)
def test_an_expression_that_does_not_parse_has_its_place(text: str, column: int) -> None:
    """An error in a value is at the character that does not fit."""
    with pytest.raises(GrammarError) as refused:
        value(text.removesuffix(";"))
    (problem,) = refused.value.problems
    assert (problem.line, problem.column) == (1, column)


@pytest.mark.parametrize("text", ["a + b", "!a", "-a", "a.b", "a ? b : c", "`a`", "(a)", "[...a]"])
def test_operators_can_be_refused(text: str) -> None:
    """Without value expressions a value is a literal, a list, an object or a variable."""
    value(text)
    with pytest.raises(GrammarError):
        value(text, expressions=False)


def test_literals_stay_without_operators() -> None:
    """Lists, objects, negative numbers and spread objects are values without operators, too."""
    text = "{a, n: -5, list: [1, 'b'], ...c}"
    assert value(text, expressions=False) == value(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000 + "]" * 5000,
        "(" * 5000 + "1" + ")" * 5000,
        "{a:" * 5000 + "1" + "}" * 5000,
        "`${" * 5000 + "1" + "}`" * 5000,
        "true ? 1 : " * 5000 + "2",
        "1" + " + 1" * 5000,
        "!" * 5000 + "true",
        "a" + ".b" * 5000,
        "a" + "[0" * 5000,
    ],
)
def test_a_deep_expression_is_refused(text: str) -> None:
    """An expression thousands of levels deep gets an error that names the limit."""
    with pytest.raises(GrammarError, match=rf"more than ({MAX_NESTING}|{MAX_EXPRESSION_DEPTH}) "):
        value(text)
