"""What a bundle carries is what its module holds: nothing is kept between calls, and nothing is changed behind the definition's back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from uncaged_bundles.errors import BundleError

from .source import Source, Statement

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assert, ast.Pass)
_WATCHED_TESTS = frozenset({"__name__", "TYPE_CHECKING"})


def check_stateless(statement: Statement, source: Source) -> None:
    """Refuse ``global`` and defaults that are computed or can change; both live on from one call to the next."""
    for node in statement.walk():
        if isinstance(node, ast.Global):
            names = ", ".join(map(repr, node.names))
            raise BundleError(f"{source.place(node.lineno)}: 'global' for {names}: nothing is kept between calls; derive it from ctx.steps")
    for arguments in _outer_arguments(statement):
        for argument, default in _defaults(arguments):
            if not _is_constant(default):
                raise BundleError(
                    f"{source.place(default.lineno)}: the default of {argument.arg!r} is no plain constant, so it would be computed "
                    "once and kept; write None, and compute it inside the function"
                )


def changes(statement: Statement) -> frozenset[str]:
    """Return the names of things that *statement* may change after they were defined; empty for definitions and plain assignments."""
    return frozenset(
        part.id for node in statement.nodes if not _only_defines(node) for part in ast.walk(node) if isinstance(part, ast.Name)
    )


def _only_defines(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(part, ast.Name | ast.Tuple | ast.List | ast.Starred) for target in targets for part in _parts(target))
        case ast.AnnAssign(target=ast.Name()):
            return True
        case ast.If(test=test):
            return any(
                (isinstance(part, ast.Name) and part.id in _WATCHED_TESTS)
                or (isinstance(part, ast.Attribute) and part.attr in _WATCHED_TESTS)
                for part in ast.walk(test)
            )
        case _:
            return isinstance(node, _DEFINITIONS) or type(node).__name__ == "TypeAlias"


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    yield target
    for part in target.elts if isinstance(target, ast.Tuple | ast.List) else ():
        yield from _parts(part)


def _outer_arguments(statement: Statement) -> Iterator[ast.arguments]:
    """Yield the parameters of functions whose defaults are evaluated when the module is loaded."""
    for node in statement.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.args
        elif isinstance(node, ast.ClassDef):
            yield from (member.args for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef))
        else:
            yield from (part.args for part in ast.walk(node) if isinstance(part, ast.Lambda))


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    yield from ((argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default)


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=items):
            return all(_is_constant(item) for item in items)
        case _:
            return False
