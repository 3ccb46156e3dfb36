"""Value expressions as JSON: a node is a list of its class and its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from uncaged_bundles.records import asdict

from uncaged_dispatcher.grammar import syntax

Json = Any
"""A value of JSON's types."""
TUPLE, UNDEFINED = "", "undefined"
"""Tags of a list of nodes, and of the absent value."""
CLASSES: Final = {
    cls.__name__: cls
    for cls in (
        syntax.Constant,
        syntax.Variable,
        syntax.PartValue,
        syntax.Spread,
        syntax.Property,
        syntax.ObjectValue,
        syntax.ArrayValue,
        syntax.Template,
        syntax.Unary,
        syntax.Binary,
        syntax.Ternary,
        syntax.Member,
        syntax.Element,
        syntax.MethodCall,
    )
}


def expression_document(expression: syntax.Expression | None) -> Json:
    """Return an expression as JSON; None for none."""
    return _encode(expression)


def read_expression(document: Json) -> syntax.Expression | None:
    """Return the expression of a document."""
    return cast("syntax.Expression | None", _decode(document))


def variables_of(expression: syntax.Expression | None) -> Iterator[str]:
    """Yield the name of each variable in an expression."""
    pending: list[object] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += node
        elif isinstance(node, syntax.Variable):
            yield node.name
        elif type(node).__name__ in CLASSES:
            pending += asdict(node).values()


def _encode(node: Any) -> Json:
    """Return a node, a tuple of nodes or a field's value as JSON."""
    if isinstance(node, tuple):
        return [TUPLE, *map(_encode, node)]
    if node is syntax.UNDEFINED:
        return [UNDEFINED]
    if type(node).__name__ in CLASSES:
        return [type(node).__name__, *map(_encode, asdict(node).values())]
    return node


def _decode(data: Json) -> Any:
    """Return the node of `_encode`."""
    if not isinstance(data, list):
        return data
    tag, *rest = data
    if tag == TUPLE:
        return tuple(map(_decode, rest))
    return syntax.UNDEFINED if tag == UNDEFINED else CLASSES[tag](*map(_decode, rest))
