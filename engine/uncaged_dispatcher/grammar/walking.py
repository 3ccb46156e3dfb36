"""Walks over the parts of alternatives and over value expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    ArrayValue,
    Binary,
    Capture,
    Constant,
    Element,
    Expression,
    Group,
    Member,
    MethodCall,
    ObjectValue,
    Part,
    PartValue,
    Property,
    RuleCapture,
    Spread,
    Template,
    Ternary,
    Unary,
    Variable,
)

Node = Expression | Spread | Property


def all_alternatives(alternatives: Iterable[Alternative]) -> Iterator[Alternative]:
    """Yield each alternative and those of the groups in it, in the order of the text."""
    for alternative in alternatives:
        yield alternative
        for part in alternative.parts:
            if isinstance(part, Group):
                yield from all_alternatives(part.alternatives)


def all_parts(alternatives: Iterable[Alternative]) -> Iterator[Part]:
    """Yield each part of the alternatives and of the groups in them."""
    for alternative in all_alternatives(alternatives):
        yield from alternative.parts


def captures(alternative: Alternative) -> Iterator[Capture | RuleCapture]:
    """Yield the captures of an alternative; those in its groups are not its own."""
    for part in alternative.parts:
        if isinstance(part, Capture | RuleCapture):
            yield part


def children(node: Node) -> tuple[Node, ...]:
    """Return the expressions directly inside one, in the order of the text."""
    match node:
        case Constant() | Variable() | PartValue():
            return ()
        case Spread(value) | Property(_, value) | Member(value):
            return (value,)
        case ObjectValue(entries):
            return entries
        case ArrayValue(items):
            return items
        case Template(_, values):
            return values
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Ternary(condition, then, otherwise):
            return (condition, then, otherwise)
        case Element(value, index):
            return (value, index)
        case MethodCall(value, _, arguments):
            return (value, *arguments)
        case _:
            assert_never(node)


def variables(value: Expression) -> Iterator[Variable]:
    """Yield each use of a variable in an expression, in the order of the text."""
    waiting: list[Node] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Variable):
            yield node
        waiting.extend(reversed(children(node)))
