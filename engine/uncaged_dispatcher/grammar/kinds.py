"""Kinds of values, and which of them operators, methods and spreads take."""

from __future__ import annotations

from uncaged_dispatcher.grammar.methods import METHODS, Method
from uncaged_dispatcher.grammar.syntax import Undefined

KINDS = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "undefined": "nothing",
}
"""Kinds of values, as messages name them."""
COMPARISONS = frozenset({"<", ">", "<=", ">="})


def kind_of(value: object) -> str:
    """Return the kind of a value: one of `KINDS`."""
    match value:
        case str():
            return "string"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case None:
            return "null"
        case Undefined():
            return "undefined"
        case list():
            return "array"
        case _:
            return "object"


def operands_problem(operator: str, left: str, right: str) -> str:
    """Return why an arithmetic or ordering operator does not take operands of two kinds, or
    nothing.
    """
    texts = operator == "+" or operator in COMPARISONS
    if left == right and (left == "number" or (texts and left == "string")):
        return ""
    takes = "two numbers or two texts" if texts else "two numbers"
    return f"'{operator}' takes {takes}, not {KINDS[left]} and {KINDS[right]}"


def operand_problem(operator: str, kind: str) -> str:
    """Return why the sign does not take an operand of a kind, or nothing."""
    return "" if kind == "number" else f"'{operator}' takes a number, not {KINDS[kind]}"


def condition_problem(kind: str) -> str:
    """Return why a value of a kind is no condition, or nothing."""
    return "" if kind == "boolean" else f"a condition is true or false, not {KINDS[kind]}"


def text_problem(kind: str) -> str:
    """Return why a value of a kind has no place in a template, or nothing."""
    if kind in ("object", "array"):
        return f"{KINDS[kind]} is no text; name one of its values"
    return ""


def spread_problem(kind: str, into: str) -> str:
    """Return why a value of a kind cannot be spread in an object or a list, or nothing."""
    if kind == into or (into == "object" and kind == "null"):
        return ""
    return f"{KINDS[kind]} cannot be spread in {KINDS[into]}"


def member_problem(kind: str, name: str) -> str:
    """Return why a value of a kind has no property of a name, or nothing."""
    if kind == "object" or (name == "length" and kind in ("string", "array")):
        return ""
    return f"{KINDS[kind]} has no property '{name}'"


def method_problem(kind: str, name: str) -> str:
    """Return why a value of a kind has no method of a name, or nothing."""
    return "" if name in METHODS.get(kind, {}) else f"{KINDS[kind]} has no method '{name}'"


def arguments_problem(method: Method, name: str, kinds: list[str]) -> str:
    """Return why arguments of these kinds do not fit a method, or nothing; a kind that is not known
    is empty.
    """
    most = len(method.arguments)
    if len(kinds) < method.needed or (len(kinds) > most and not method.more):
        count = str(most) if method.needed == most else f"{method.needed} to {most}"
        return f"{name} takes {count} arguments, not {len(kinds)}"
    for place, kind in enumerate(kinds):
        wanted = method.arguments[min(place, most - 1)]
        if wanted and kind and kind != wanted:
            return f"{name} takes {KINDS[wanted]} as its argument {place + 1}, not {KINDS[kind]}"
    return ""
