"""Source of a module as top-level statements, each with its text, the names that it binds and those
that it needs.
"""

from __future__ import annotations

import ast
import inspect
import symtable
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from uncaged_bundles.errors import BundleError
from uncaged_bundles.syntax import parse_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One top-level statement, or several that share a line.

    text: its lines, with decorators and the comment directly above.
    needs: the names that it uses of the module or of the builtins, sorted.
    """

    index: int
    nodes: tuple[ast.stmt, ...]
    text: str
    binds: tuple[str, ...]
    needs: tuple[str, ...]

    def first_lines(self) -> dict[str, int]:
        """Return the line of each name that it needs where that is used first, else its own."""
        lines = dict.fromkeys(self.needs, self.nodes[0].lineno)
        uses = [(node.id, node.lineno) for node in self.walk() if isinstance(node, ast.Name)]
        # in reverse order, so that the first line is the one that stays
        lines.update(sorted(uses, key=lambda use: -use[1]))
        return lines

    def walk(self) -> Iterator[ast.AST]:
        for node in self.nodes:
            yield from ast.walk(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of one module. package: the anchor of its relative imports."""

    name: str
    path: str
    package: str
    statements: tuple[Statement, ...]
    bindings: Mapping[str, tuple[Statement, ...]]

    @property
    def imports_star(self) -> bool:
        return any(node.names[0].name == "*" for node in self._imports_from())

    @property
    def postpones_annotations(self) -> bool:
        return any(node.module == "__future__" for node in self._imports_from())

    def _imports_from(self) -> Iterator[ast.ImportFrom]:
        nodes = (node for statement in self.statements for node in statement.nodes)
        return (node for node in nodes if isinstance(node, ast.ImportFrom))

    def place(self, line: int) -> str:
        return f"{self.path}:{line}"


def read_source(module: ModuleType) -> Source:
    """Read the source of a loaded module.

    Raises:
        BundleError: there is no source text (compiled code, a prompt), or it is no longer the text
            that was loaded.
    """
    name = module.__name__
    try:
        with tokenize.open(inspect.getsourcefile(module) or "") as file:
            text = file.read()
        tree = parse_module(text)
    except (OSError, TypeError) as exc:
        raise BundleError(
            f"the module {name!r} has no source text to carry; define what the moderator names in a file"
        ) from exc
    except SyntaxError as exc:
        raise BundleError(
            f"{module.__file__}:{exc.lineno}: {exc.msg}; the file has changed since it was loaded"
        ) from exc
    statements = tuple(_statements(tree, text.split("\n")))
    bindings: dict[str, tuple[Statement, ...]] = {}
    for statement in statements:
        for bound in statement.binds:
            bindings[bound] = (*bindings.get(bound, ()), statement)
    package = module.__spec__.parent if module.__spec__ else module.__package__
    path = _display_path(module.__file__ or name)
    return Source(
        name=name, path=path, package=package or "", statements=statements, bindings=bindings
    )


def _display_path(path: str) -> str:
    """Return *path* for messages: relative to the current directory if it is inside."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _statements(tree: ast.Module, lines: list[str]) -> Iterator[Statement]:
    for index, nodes in enumerate(_by_line(tree.body)):
        first = min(
            [
                nodes[0].lineno,
                *(decorator.lineno for decorator in getattr(nodes[0], "decorator_list", ())),
            ]
        )
        last = nodes[-1].end_lineno
        binds, needs = _names("\n".join(lines[first - 1 : last]))
        while (
            first > 1 and lines[first - 2].startswith("#") and not lines[first - 2].startswith("#!")
        ):
            first -= 1
        yield Statement(
            index=index,
            nodes=nodes,
            text="\n".join(lines[first - 1 : last]),
            binds=binds,
            needs=needs,
        )


def _by_line(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ...]]:
    group: list[ast.stmt] = []
    for node in body:
        if group and node.lineno != group[-1].end_lineno:
            yield tuple(group)
            group = []
        group.append(node)
    if group:
        yield tuple(group)


def _names(code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that a top-level statement binds, and the outer names that it uses."""
    top = symtable.symtable(code, "<statement>", "exec")
    binds = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    needs = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    pending = top.get_children()
    while pending:
        table = pending.pop()
        pending.extend(table.get_children())
        needs |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_global() and symbol.is_referenced()
        }
    return tuple(sorted(binds)), tuple(
        sorted(name for name in needs - binds if not name.startswith("."))
    )
