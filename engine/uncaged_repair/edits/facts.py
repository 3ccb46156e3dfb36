"""Facts about values from a failing run, which narrow the edits: types of variables, attributes of
types.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

NUMBERS = frozenset({"int", "float", "bool", "complex", "Decimal", "Fraction"})
SEQUENCES = frozenset({"list", "tuple", "str", "bytes", "range", "deque", "bytearray"})
Types = frozenset[str]
UNKNOWN_FIT = 0.5
MISFIT = 0.15
UNKNOWN: Types = frozenset()
RESULT_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        ("len", "ord", "int", "round", "hash", "id", "sum", "index", "count", "find"), "int"
    ),
    **dict.fromkeys(
        (
            "str",
            "repr",
            "chr",
            "format",
            "join",
            "strip",
            "lower",
            "upper",
            "replace",
            "lstrip",
            "rstrip",
            "title",
            "hex",
        ),
        "str",
    ),
    **dict.fromkeys(("list", "sorted", "split", "splitlines", "readlines"), "list"),
    **dict.fromkeys(
        (
            "bool",
            "any",
            "all",
            "isinstance",
            "startswith",
            "endswith",
            "issubset",
            "issuperset",
            "isdigit",
        ),
        "bool",
    ),
    **{
        name: name
        for name in (
            "dict",
            "set",
            "tuple",
            "float",
            "frozenset",
            "deque",
            "range",
            "defaultdict",
            "Counter",
            "bytes",
        )
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFacts:
    """Observed types by their bare names.

    locals: (path, variable) to (first line of the code, types). attributes: class name to attribute
    to types. errors: (exception name, message) of the failing tests.
    """

    locals: Mapping[tuple[str, str], tuple[tuple[int, Types], ...]] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, Types]] = field(default_factory=dict)
    errors: tuple[tuple[str, str], ...] = ()


def compatible(types: Types, other: Types) -> bool:
    """Return whether a value of *other* can replace one of *types*; unknown types can."""
    left, right = types - {"NoneType"}, other - {"NoneType"}
    if not left or not right or left & right:
        return True
    return bool(left & NUMBERS and right & NUMBERS)


def fit(types: Types, wanted: Types) -> float:
    """Return how well a value of *types* suits where one of *wanted* is used, above 0: the failing
    run is wrong somewhere, so that its types are evidence and no proof.
    """
    if types & wanted:
        return 1.0
    return MISFIT if types - {"NoneType"} else UNKNOWN_FIT


def number_fit(types: Types) -> float:
    """Return how well a value of *types* suits as a number."""
    return MISFIT if types == {"bool"} else fit(types, NUMBERS)


def types_of(node: ast.AST | None, names: Mapping[str, Types], facts: ValueFacts) -> Types:  # noqa: PLR0912 - one branch for each kind of expression
    """Return the types that *node* may have, as far as the text and the failing run show; empty if
    they do not.
    """
    match node:
        case ast.Constant(value=value):
            return frozenset({type(value).__name__})
        case ast.Name(id=name):
            return names.get(name, UNKNOWN)
        case ast.List() | ast.ListComp():
            return frozenset({"list"})
        case ast.Dict() | ast.DictComp():
            return frozenset({"dict"})
        case ast.Set() | ast.SetComp():
            return frozenset({"set"})
        case ast.Tuple():
            return frozenset({"tuple"})
        case ast.JoinedStr():
            return frozenset({"str"})
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return frozenset({"bool"})
        case ast.UnaryOp(operand=operand):
            return types_of(operand, names, facts)
        case ast.BinOp(left=first, right=second) | ast.IfExp(body=first, orelse=second):
            left, right = types_of(first, names, facts), types_of(second, names, facts)
            return left | right if left and right else UNKNOWN
        case ast.Subscript(value=value, slice=ast.Slice()):
            return types_of(value, names, facts)
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return frozenset({RESULT_TYPES[name]}) if name in RESULT_TYPES else UNKNOWN
        case ast.Attribute(value=value, attr=attribute):
            seen = [
                facts.attributes.get(kind, {}).get(attribute, UNKNOWN)
                for kind in types_of(value, names, facts)
            ]
            return UNKNOWN.union(*seen)
        case _:
            pass
    return UNKNOWN
