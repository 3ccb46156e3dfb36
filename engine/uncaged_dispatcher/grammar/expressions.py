"""Parser of value expressions: by precedence from the ternary operator down to postfix ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from uncaged_dispatcher.grammar.limits import MAX_EXPRESSION_DEPTH
from uncaged_dispatcher.grammar.numbers import is_number
from uncaged_dispatcher.grammar.scanning import Scanner
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
    Spread,
    Template,
    Ternary,
    Unary,
    Variable,
)
from uncaged_dispatcher.grammar.walking import Node, children

STRENGTHS = {
    operator: strength
    for strength, operators in enumerate(
        (
            ("??",),
            ("||",),
            ("&&",),
            ("===", "!=="),
            ("<", ">", "<=", ">="),
            ("+", "-"),
            ("*", "/", "%"),
        )
    )
    for operator in operators
}
"""Operators between two operands with their precedence; a greater number binds more strongly."""
CONSTANTS = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}
_LOGICAL = frozenset({"||", "&&"})
_OPERATOR = re.compile(r"\?\?|\|\||&&|===|!==|<=|>=|[<>+\-*/%]")


class ExpressionParser:
    """Parser of the value behind ``->``.

    With ``operators=False`` only literals, lists, objects and variables are accepted.
    """

    def __init__(self, scanner: Scanner, *, operators: bool = True) -> None:
        self._scanner = scanner
        self._operators = operators
        self._bracketed: set[int] = set()
        """Identities of the expressions in brackets."""

    def parse(self) -> Expression:
        """Return the expression that is next and skip it with the space after it."""
        begin = self._scanner.at
        value = self._value()
        if _deeper_than(MAX_EXPRESSION_DEPTH, value):
            self._scanner.fail(
                f"this value has more than {MAX_EXPRESSION_DEPTH} operators or levels inside each other",
                begin,
            )
        return value

    def _value(self) -> Expression:
        scanner = self._scanner
        scanner.enter("values")
        value = self._ternary() if self._operators else self._primary()
        scanner.leave()
        return value

    def _ternary(self) -> Expression:
        scanner = self._scanner
        condition = self._binary(0)
        at = scanner.at
        if not scanner.take("?"):
            return condition
        then = self._value()
        scanner.expect(":", "between the two results of '?'")
        return Ternary(condition, then, self._value(), at)

    def _binary(self, weakest: int) -> Expression:
        """Parse operands joined by operators that bind at least as strongly as *weakest*.

        A chain of one precedence is a loop, so that its length costs no recursion.
        """
        scanner = self._scanner
        left = self._unary()
        while found := _OPERATOR.match(scanner.text, scanner.at):
            operator, at = found.group(), scanner.at
            if STRENGTHS[operator] < weakest:
                break
            scanner.take(operator)
            right = self._binary(STRENGTHS[operator] + 1)
            if operator == "??":
                self._refuse_mixing(left, at)
                self._refuse_mixing(right, right.at)
            left = Binary(operator, left, right, at)
        return left

    def _refuse_mixing(self, operand: Expression, at: int) -> None:
        if (
            isinstance(operand, Binary)
            and operand.operator in _LOGICAL
            and id(operand) not in self._bracketed
        ):
            self._scanner.fail("'??' beside '||' or '&&' needs brackets", at)

    def _unary(self) -> Expression:
        """Parse the operators before an operand in a loop, the innermost last."""
        scanner = self._scanner
        before: list[tuple[str, int]] = []
        while True:
            at = scanner.at
            if scanner.take("-"):
                before.append(("-", at))
            elif scanner.sees("!") and not scanner.sees("!=="):
                scanner.take("!")
                before.append(("!", at))
            elif scanner.peek_name() == "typeof":
                scanner.name("")
                before.append(("typeof", at))
            else:
                break
        value = self._postfix(self._primary())
        for operator, at in reversed(before):
            value = _negated(operator, value, at)
        return value

    def _postfix(self, value: Expression) -> Expression:
        scanner = self._scanner
        while True:
            at = scanner.at
            optional = scanner.sees("?.") and not scanner.text[at + 2 : at + 3].isdigit()
            if optional:
                scanner.take("?.")
            if scanner.take("["):
                index = self._value()
                scanner.expect("]", "after an index")
                value = Element(value, index, optional, at)
            elif optional or scanner.take("."):
                name_at = scanner.at
                name = scanner.name("the name of a property is expected after '.'")
                if scanner.take("("):
                    arguments = self._items(")", "the arguments of a method")
                    value = MethodCall(value, name, arguments, optional, name_at)
                else:
                    value = Member(value, name, optional, name_at)
            else:
                return value

    def _primary(self) -> Expression:
        scanner = self._scanner
        at = scanner.at
        if scanner.take("{"):
            return ObjectValue(tuple(self._entries()), at)
        if scanner.take("["):
            return ArrayValue(self._items("]", "a list"), at)
        if scanner.sees('"') or scanner.sees("'"):
            text = scanner.quoted()
            scanner.skip_space()
            return Constant(text, at)
        if name := scanner.peek_name():
            scanner.name("")
            return Constant(CONSTANTS[name], at) if name in CONSTANTS else Variable(name, at)
        if self._operators and scanner.sees("`"):
            return self._template()
        if self._operators and scanner.take("("):
            value = self._value()
            scanner.expect(")", "after an expression in brackets")
            self._bracketed.add(id(value))
            return value
        return self._number()

    def _number(self) -> Expression:
        scanner = self._scanner
        at = scanner.at
        negative = not self._operators and scanner.take("-")
        number = scanner.number()
        if number is None:
            scanner.fail_expecting("a value is expected")
        scanner.skip_space()
        return Constant(-number if negative else number, at)

    def _items(self, end: str, what: str) -> tuple[Expression | Spread, ...]:
        """Parse the items of a list or of a call up to its end, the opening mark is skipped."""
        scanner = self._scanner
        items: list[Expression | Spread] = []
        while not scanner.take(end):
            at = scanner.at
            if self._operators and scanner.take("..."):
                items.append(Spread(self._value(), at))
            else:
                items.append(self._value())
            if not scanner.take(",") and not scanner.sees(end):
                scanner.fail_expecting(f"',' or {end!r} is expected in {what}")
        return tuple(items)

    def _entries(self) -> Iterator[Property | Spread]:
        """Parse the properties of an object up to its end, the opening mark is skipped."""
        scanner = self._scanner
        while not scanner.take("}"):
            at = scanner.at
            if scanner.take("..."):
                yield Spread(self._value(), at)
            elif scanner.sees('"') or scanner.sees("'"):
                name = scanner.quoted()
                scanner.skip_space()
                scanner.expect(":", "between the name of a property and its value")
                yield Property(name, self._value(), at)
            else:
                name = scanner.name("the name of a property is expected")
                if scanner.take(":"):
                    yield Property(name, self._value(), at)
                elif scanner.sees(",") or scanner.sees("}"):
                    yield Property(name, Variable(name, at), at)
                else:
                    scanner.fail_expecting(
                        "':' is expected between the name of a property and its value"
                    )
            if not scanner.take(",") and not scanner.sees("}"):
                scanner.fail_expecting("',' or '}' is expected in an object")

    def _template(self) -> Template:
        scanner = self._scanner
        at = scanner.at
        scanner.at += 1
        texts = [scanner.template_text()]
        values: list[Expression] = []
        while not scanner.sees("`"):
            scanner.take("${")
            values.append(self._value())
            if not scanner.sees("}"):
                scanner.fail_expecting("'}' is expected after a value in a template")
            scanner.at += 1
            texts.append(scanner.template_text())
        scanner.take("`")
        return Template(tuple(texts), tuple(values), at)


def _negated(operator: str, value: Expression, at: int) -> Expression:
    """Return an operator before a value; a number's sign becomes part of the number."""
    if operator == "-" and isinstance(value, Constant) and is_number(value.value):
        return Constant(-value.value, at)
    return Unary(operator, value, at)


def _deeper_than(limit: int, expression: Expression) -> bool:
    """Return whether an expression is more than *limit* levels deep as a tree."""
    level: list[Node] = [expression]
    for _ in range(limit):
        level = [child for node in level for child in children(node)]
        if not level:
            return False
    return True
