"""Inference of a task script's parameters from its reads of ``params``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from uncaged_bundles.syntax import parse_module

from .guess import Guess, kind_of

METHODS = frozenset({"get", "keys", "values", "items", "copy"})


def parameters(text: str) -> tuple[Guess, ...]:
    """Return one guess for each name that is read from ``params``, in the order of the text;
    required if it is read without a default.
    """
    tree = parse_module(text)
    numbers = {id(node): kind for node, kind in _numbers(tree)}
    found: dict[str, Guess] = {}
    reads = [
        (node, read)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and (read := _read(node)) is not None
    ]
    for node, (name, required, default) in sorted(
        reads, key=lambda pair: (pair[0].lineno, pair[0].col_offset)
    ):
        kind = numbers.get(id(node)) or kind_of(name, default)
        before = found.get(name)
        if before is None:
            found[name] = Guess(name=name, kind=kind, required=required, default=default)
        elif before.kind == "string" and kind != "string":  # some uses show the type
            found[name] = Guess(
                name=name, kind=kind, required=before.required, default=before.default
            )
    return tuple(found.values())


def _read(node: ast.expr) -> tuple[str, bool, object] | None:
    """Return the name that an expression reads from ``params``, whether it is required, and its
    default.
    """
    match node:
        case ast.Attribute(value=ast.Name(id="params"), attr=name) if name not in METHODS:
            return name, True, None
        case ast.Subscript(value=ast.Name(id="params"), slice=ast.Constant(value=str(name))):
            return name, True, None
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="params"), attr="get"),
            args=[ast.Constant(value=str(name)), *rest],
        ):
            default = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None
            return name, False, default if isinstance(default, str | int | float) else None
        case _:
            return None


def _numbers(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the expressions that must be numbers by their context, with the type."""
    for node in ast.walk(tree):
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                yield from ((part, "integer") for part in (lower, upper, step) if part is not None)
            case ast.Call(func=ast.Name(id="range"), args=arguments):
                yield from ((part, "integer") for part in arguments)
            case ast.BinOp(left=left, right=right) if _is_number(left) or _is_number(right):
                yield from ((part, "number") for part in (left, right))
            case ast.Compare(left=left, comparators=others) if any(
                _is_number(part) for part in (left, *others)
            ):
                yield from ((part, "number") for part in (left, *others))
            case _:
                pass


def _is_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )
