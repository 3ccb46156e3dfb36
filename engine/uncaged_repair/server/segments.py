"""Code of two versions of a module, compiled only where they differ: the function or class at the
top level that holds the difference.
"""

from __future__ import annotations
import __future__

import ast
import io
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    Extent = tuple[int, int, tuple[tuple[int, str], ...]]
    """First line, end, and the lines that open the classes around it, by their numbers."""

MAX_KNOWN = 64


class SegmentCompiler:
    """Compiler that remembers the old versions. Its results have the names and line numbers of the
    whole module.
    """

    def __init__(self) -> None:
        self._old: dict[tuple[str, bytes], _OldModule] = {}

    def compile(self, path: str, old: bytes, new: bytes) -> tuple[CodeType, CodeType]:
        """Return the code of both versions: of the statement that differs, or of the modules.

        Raises:
            SyntaxError, ValueError, RecursionError: one of them does not compile.
        """
        known = self._old.get((path, old))
        if known is None:
            if len(self._old) >= MAX_KNOWN:
                self._old.clear()
            known = self._old[path, old] = _OldModule(path, old)
        return known.with_new(new)


class _OldModule:
    """Old version of a module: lines, extents of its statements, and code that was compiled."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path, self._data = path, data
        self._encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self._lines = data.split(b"\n")
        tree = ast.parse(data)
        self._flags = 0
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for name in statement.names:
                    self._flags |= getattr(__future__, name.name).compiler_flag
        # the compiler treats names that the module imports in a way of their own
        self._header = "".join(f"import {name};" for name in sorted(_imported(tree)))
        odd = b"\r" in data.replace(b"\r\n", b"\n") or b"\f" in data  # lines end elsewhere
        self._extents: list[Extent] = [] if odd else list(_extents(tree.body, ()))
        self._codes: dict[Extent | None, CodeType] = {}

    def with_new(self, new: bytes) -> tuple[CodeType, CodeType]:
        lines = new.split(b"\n")
        extent = self._extent(lines)
        if extent is not None:
            first, last, classes = extent
            try:
                grown = len(lines) - len(self._lines)
                return self._code(extent), self._segment(lines, (first, last + grown, classes))
            except (SyntaxError, ValueError):
                pass  # perhaps the change reaches beyond the statement
        after = compile(new, self._path, "exec", dont_inherit=True)
        return self._code(None), after

    def _extent(self, lines: list[bytes]) -> Extent | None:
        """Return the innermost definition that holds the whole difference."""
        old, same = self._lines, min(len(self._lines), len(lines))
        start = next((i for i in range(same) if old[i] != lines[i]), same)
        end = next((i for i in range(same - start) if old[-1 - i] != lines[-1 - i]), same - start)
        for first, last, classes in self._extents:
            # its first line stays, so that the statement still begins there; the header needs one
            if 0 < first < start and len(old) - end <= last and first < len(old) - end:
                return first, last, classes
        return None

    def _code(self, extent: Extent | None) -> CodeType:
        if extent not in self._codes:
            self._codes[extent] = (
                compile(self._data, self._path, "exec", dont_inherit=True)
                if extent is None
                else self._segment(self._lines, extent)
            )
        return self._codes[extent]

    def _segment(self, lines: list[bytes], extent: Extent) -> CodeType:
        first, last, classes = extent
        text = b"\n".join(lines[first:last]).decode(self._encoding)
        before = [self._header, *[""] * (first - 1)]
        for number, opening in classes:
            before[number] = opening
        padded = "\n".join([*before, text, ""])
        code: CodeType = compile(padded, self._path, "exec", self._flags, dont_inherit=True)
        return code


def _extents(body: list[ast.stmt], classes: tuple[tuple[int, str], ...]) -> Iterator[Extent]:
    """Yield the definitions of a block, inner ones first."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if isinstance(statement, ast.ClassDef):
                opening = " " * statement.col_offset + f"class {statement.name}:"
                yield from _extents(statement.body, (*classes, (statement.lineno - 1, opening)))
            first = min([statement.lineno, *(item.lineno for item in statement.decorator_list)])
            yield first - 1, statement.end_lineno or statement.lineno, classes


def _imported(tree: ast.Module) -> set[str]:
    """Return the names that the module itself imports."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
                found.update(name for name in names if name != "*")
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                waiting.append(node)
    return found
