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
    from types import CodeType

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
        self._extents: list[tuple[int, int]] = []
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for name in statement.names:
                    self._flags |= getattr(__future__, name.name).compiler_flag
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = min([statement.lineno, *(item.lineno for item in statement.decorator_list)])
                self._extents.append((first - 1, statement.end_lineno or statement.lineno))
        # the compiler treats names that the module imports in a way of their own
        self._header = "".join(f"import {name};" for name in sorted(_imported(tree)))
        if b"\r" in data.replace(b"\r\n", b"\n") or b"\f" in data:
            self._extents = []  # lines end elsewhere than here
        self._codes: dict[tuple[int, int] | None, CodeType] = {}

    def with_new(self, new: bytes) -> tuple[CodeType, CodeType]:
        lines = new.split(b"\n")
        extent = self._extent(lines)
        if extent is not None:
            first, last = extent
            try:
                return self._code(extent), self._segment(
                    lines, first, len(lines) - (len(self._lines) - last)
                )
            except (SyntaxError, ValueError):
                pass  # perhaps the change reaches beyond the statement
        after = compile(new, self._path, "exec", dont_inherit=True)
        return self._code(None), after

    def _extent(self, lines: list[bytes]) -> tuple[int, int] | None:
        """Return the lines of the one statement that holds the whole difference."""
        old, same = self._lines, min(len(self._lines), len(lines))
        start = next((i for i in range(same) if old[i] != lines[i]), same)
        end = next((i for i in range(same - start) if old[-1 - i] != lines[-1 - i]), same - start)
        for first, last in self._extents:
            # its first line stays, so that the statement still begins there; the header needs one
            if 0 < first < start and len(old) - end <= last and first < len(old) - end:
                return first, last
        return None

    def _code(self, extent: tuple[int, int] | None) -> CodeType:
        if extent not in self._codes:
            self._codes[extent] = (
                compile(self._data, self._path, "exec", dont_inherit=True)
                if extent is None
                else self._segment(self._lines, *extent)
            )
        return self._codes[extent]

    def _segment(self, lines: list[bytes], first: int, last: int) -> CodeType:
        text = b"\n".join(lines[first:last]).decode(self._encoding)
        padded = self._header + "\n" * first + text + "\n"
        code: CodeType = compile(padded, self._path, "exec", self._flags, dont_inherit=True)
        return code


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
