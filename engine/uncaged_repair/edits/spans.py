"""Byte spans of syntax tree nodes in a file, so that an edit leaves all other bytes unchanged."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from uncaged_bundles.syntax import parse_module

# what Python's tokenizer ends a line at; str.splitlines knows more
LINE_END = re.compile(rb"\r\n|\r|\n")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class UnreadableSource(Exception):
    """The file cannot be parsed here: it is binary, wrongly encoded, no Python, or a newer
    Python.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """Parsed Python file.

    path: relative to the repository, with forward slashes. data: the text as UTF-8 without byte
    order mark; all spans count its bytes.
    """

    path: str
    data: bytes
    encoding: str
    tree: ast.Module
    parents: Mapping[ast.AST, ast.AST]
    line_starts: tuple[int, ...]

    def text(self, start: int, end: int) -> str:
        return self.data[start:end].decode()

    def offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the first byte of *node* and the one after its last. Parentheses around an
        expression do not belong to it.
        """
        end_line, end_column = (
            getattr(node, "end_lineno", None),
            getattr(node, "end_col_offset", None),
        )
        if end_line is None or end_column is None:
            raise ValueError(f"{type(node).__name__} has no position")
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        return self.text(*self.span(node))

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before *node*'s first line."""
        start = self.line_starts[node.lineno - 1]
        return self.text(start, start + node.col_offset)

    @property
    def newline(self) -> str:
        found = LINE_END.search(self.data)
        return found.group().decode() if found else "\n"

    def encode(self, data: bytes) -> bytes:
        """Return *data* in the file's own encoding, with its byte order mark."""
        return data.decode().encode(self.encoding)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above


def read_source(path: str, raw: bytes) -> SourceFile:
    """Parse *raw*, the bytes of the file *path*.

    Raises:
        UnreadableSource: with one sentence that says why.
    """
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
        text = raw.decode(encoding)
        tree = parse_module(text)
    except (
        SyntaxError,
        UnicodeDecodeError,
        ValueError,
        LookupError,
        RecursionError,
        MemoryError,
    ) as exc:
        raise UnreadableSource(f"{path}: {exc}") from exc
    data = text.encode()
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    starts = (0, *(found.end() for found in LINE_END.finditer(data)))
    return SourceFile(
        path=path, data=data, encoding=encoding, tree=tree, parents=parents, line_starts=starts
    )


def parses(data: bytes) -> bool:
    """Return whether *data* (UTF-8) is a Python module."""
    try:
        parse_module(data.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parses_with(source: SourceFile, start: int, end: int, after: str) -> bool:
    """Return whether *source* is a Python module with *after* in place of the bytes from *start* to
    *end*. Only the innermost function around them is parsed, or else the module's own statements.
    """
    low, high, indented = start, end, False
    block: list[ast.stmt] = source.tree.body
    while block:
        inner: list[ast.stmt] = []
        for statement in block:
            begin, finish = _extent(source, statement)
            if begin < start and end <= finish and isinstance(statement, DEFINITIONS):
                low, high, inner = begin, finish, statement.body
                indented = statement.col_offset > 0
            elif block is source.tree.body and begin <= end and start <= finish:
                low, high = min(low, begin), max(high, finish)
        block = inner
    text = source.data[low:start] + after.encode() + source.data[end:high]
    return parses(b"if 1:\n" + text if indented else text)


def _extent(source: SourceFile, statement: ast.stmt) -> tuple[int, int]:
    """Return the bytes of the whole lines of *statement*, with its decorators."""
    starts = source.line_starts
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(node.lineno for node in decorators)])
    last = statement.end_lineno or statement.lineno
    return starts[first - 1], starts[last] if last < len(starts) else len(source.data)


def header_lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of *statement* without its body."""
    first = min(
        [statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))]
    )
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return first, max(statement.lineno, body[0].lineno - 1)
    return first, statement.end_lineno or statement.lineno


def blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield each list of statements in *statement*."""
    for name in ("body", "orelse", "finalbody"):
        held = getattr(statement, name, None)
        if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
            yield held
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, []):
            yield part.body
