"""Check that a carried statement keeps no state between calls, so that a function's result depends
on its arguments alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from uncaged_bundles.errors import BundleError

from .source import Source, Statement


def check_stateless(statement: Statement, source: Source) -> None:
    """Refuse ``global``, and defaults that are computed or mutable: both keep state between
    calls.
    """
    for node in statement.walk():
        if isinstance(node, ast.Global):
            names = ", ".join(map(repr, node.names))
            raise BundleError(
                f"{source.place(node.lineno)}: 'global' for {names}: nothing is kept between calls; derive it from ctx.steps"
            )
    for arguments in _outer_arguments(statement):
        for argument, default in _defaults(arguments):
            if not _is_constant(default):
                raise BundleError(
                    f"{source.place(default.lineno)}: the default of {argument.arg!r} is no plain constant, so it would be computed "
                    "once and kept; write None, and compute it inside the function"
                )


def _outer_arguments(statement: Statement) -> Iterator[ast.arguments]:
    """Yield the parameters of functions whose defaults are evaluated when the module is loaded."""
    for node in statement.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.args
        elif isinstance(node, ast.ClassDef):
            yield from (
                member.args
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            )
        else:
            yield from (part.args for part in ast.walk(node) if isinstance(part, ast.Lambda))


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(
        positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
    )
    yield from (
        (argument, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default
    )


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=items):
            return all(_is_constant(item) for item in items)
        case _:
            return False
