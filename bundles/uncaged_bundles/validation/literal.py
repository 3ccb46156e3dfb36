"""The descriptor's literal in a bundle's syntax tree. It is written once and computes nothing, so
that a person reads the same values as the engine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .. import shapes
from .findings import Finding

NAME = "descriptor"
_WORDS = {
    ast.Name: "a name",
    ast.Call: "a call",
    ast.JoinedStr: "an f-string",
    ast.BinOp: "a sum",
    ast.Attribute: "an attribute",
}
_MISSING = Finding(line=1, column=0, message=f"no {NAME!r} in the file")


def find_descriptor(tree: ast.Module) -> ast.expr | Finding:
    """Return the expression that is assigned to ``descriptor`` at the top level of the file."""
    found = [statement for statement in tree.body if _assigns(statement)]
    if not found:
        return _MISSING
    if len(found) > 1:
        return Finding.at(found[1], f"{NAME!r} is assigned a second time; there is one")
    statement = found[0]
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return value or Finding.at(statement, f"{NAME!r} has no value of its own")


def flaw_in_literal(node: ast.expr) -> Finding | None:
    """Return a finding at the first part of the expression that would have to be computed."""
    for part in _computed_parts(node):
        what = _WORDS.get(type(part), "an expression")
        return Finding.at(
            part,
            f"{NAME!r} is not a literal: it contains {what} ({shapes.shown(ast.unparse(part))}); write the value out",
        )
    return None


def node_at(node: ast.expr, path: shapes.Path) -> ast.expr:
    """Return the part of the literal at *path*, or the nearest one around it."""
    for part in path:
        match node:
            case ast.Dict():
                found = [
                    value
                    for key, value in zip(node.keys, node.values, strict=True)
                    if _constant(key) == part
                ]
                if not found:
                    return node
                node = found[0]
            case ast.List() if isinstance(part, int) and part < len(node.elts):
                node = node.elts[part]
            case _:
                return node
    return node


def repeated_key(node: ast.expr) -> Finding | None:
    """Return a finding at the first key that one mapping has twice: a person could read either
    value.
    """
    for part in ast.walk(node):
        keys = (
            [key for key in part.keys if isinstance(key, ast.Constant)]
            if isinstance(part, ast.Dict)
            else []
        )
        seen: set[object] = set()
        for key in keys:
            if key.value in seen:
                return Finding.at(
                    key, f"the key {shapes.shown(key.value)} occurs twice in one mapping"
                )
            seen.add(key.value)
    return None


def _assigns(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == NAME for target in targets)
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return name == NAME
        case _:
            return False


def _computed_parts(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case (
            ast.Constant()
            | ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float()))
        ):
            return
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield value  # **unpacked
                else:
                    yield from _computed_parts(key)
                    yield from _computed_parts(value)
        case ast.List() | ast.Tuple() | ast.Set():
            for item in node.elts:
                yield from _computed_parts(item)
        case _:
            yield node


def _constant(key: ast.expr | None) -> object:
    return key.value if isinstance(key, ast.Constant) else None
