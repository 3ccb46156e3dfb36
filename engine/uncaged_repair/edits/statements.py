"""Edit operators for statements: one too many, out of order, one level too deep or too shallow, a
result that is not used.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator

from .edit import SourceEdit
from .edit_site import EditSite
from .scopes import SIMPLE, Function
from .spans import blocks

BRANCH = re.compile(rb"\s*(?:else|elif|except|finally)\b")


def results(site: EditSite) -> Iterator[SourceEdit]:
    """Yield a discarded result returned or assigned, and a returned value with something added."""
    names = [name for name in site.names if name not in ("self", "cls")][:10]
    match site.statement:
        case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
            return
        case ast.Expr(value=value) as statement if site.function is not None:
            yield site.edit(statement, f"return {site.segment(value)}", "return added", 1.0)
            yield from _assigned(site, value)
        case ast.Return(value=ast.expr() as value):
            for rank, name in enumerate(names):
                likely = site.names[name] & {"list", "str", "int", "float", "tuple"}
                yield site.edit(
                    value,
                    f"{name} + {site.segment(value)}",
                    "operand added",
                    (1.0 if likely else 0.4) / (1 + 0.2 * rank),
                )
        case ast.Return(value=None) as statement:
            for rank, name in enumerate(names):
                yield site.edit(statement, f"return {name}", "value returned", 1 / (1 + 0.2 * rank))
        case _:
            pass


def keywords(site: EditSite) -> Iterator[SourceEdit]:
    """Yield `if` for `elif`, `break` for `continue`, and the reverse."""
    start = site.source.span(site.statement)[0]
    match site.statement:
        case ast.If() if site.source.data.startswith(b"elif", start):
            yield site.edit_span(start, start + len("elif"), "if", "branch", 1.0)
        case ast.If() as statement if site.function is not None:
            if isinstance(_previous(site, statement), ast.If):
                yield site.edit_span(start, start + len("if"), "elif", "branch", 1.0)
        case ast.Break() as statement:
            yield site.edit(statement, "continue", "jump", 1.0)
        case ast.Continue() as statement:
            yield site.edit(statement, "break", "jump", 1.0)
        case _:
            pass


def _assigned(site: EditSite, value: ast.expr) -> Iterator[SourceEdit]:
    match value:
        case ast.Call(func=ast.Attribute(value=owner), args=arguments):
            base, plain = site.segment(owner), isinstance(owner, ast.Name)
            yield site.edit(
                site.statement,
                f"{base} = {site.segment(value)}",
                "result assigned",
                1.0 if plain else 0.5,
            )
            if len(arguments) == 1:
                yield site.edit(
                    site.statement,
                    f"{base} = {site.segment(arguments[0])}",
                    "result assigned",
                    0.5,
                )
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            yield site.edit(
                site.statement,
                f"{site.segment(left)} = {site.segment(right)}",
                "assignment for comparison",
                1.0,
            )
        case _:
            pass


def removals(site: EditSite) -> Iterator[SourceEdit]:
    """Yield the removal of the statement."""
    statement = site.statement
    here, block = line_span(site, statement), block_of(site, statement)
    kept = (
        ast.Import | ast.ImportFrom | ast.Pass | Function | ast.ClassDef | ast.Global | ast.Nonlocal
    )
    if here is None or block is None or isinstance(statement, kept) or is_bare_constant(statement):
        return
    likely = 1.0 if isinstance(statement, SIMPLE) else 0.5
    if len(block) > 1:
        yield site.edit_span(
            *here, "", "statement removed", likely, nature="delete", line=statement.lineno
        )
    else:
        yield site.edit(statement, "pass", "statement removed", likely, nature="delete")


def moves(site: EditSite) -> Iterator[SourceEdit]:
    """Yield the statement before the one above it, out of its block, and into the block above
    it.
    """
    statement = site.statement
    here = line_span(site, statement)
    block = block_of(site, statement)
    if here is None or block is None or isinstance(statement, Function | ast.ClassDef):
        return
    source, index = site.source, block.index(statement)
    text = source.text(*here)
    if (
        index
        and (above := line_span(site, block[index - 1])) is not None
        and not isinstance(block[index - 1], Function | ast.ClassDef | ast.Import | ast.ImportFrom)
    ):
        between = source.text(above[1], here[0])
        if not is_bare_constant(block[index - 1]):
            yield site.edit_span(
                above[0],
                here[1],
                _with_line_end(text, source.newline) + between + source.text(*above),
                "statement order",
                1.0,
            )
        inner = list(blocks(block[index - 1]))
        if inner and isinstance(
            block[index - 1], ast.For | ast.While | ast.If | ast.With | ast.Try
        ):
            deeper = _reindented(site, here, source.indent(statement), source.indent(inner[-1][-1]))
            yield site.edit_span(*here, deeper, "indentation", 0.6)
    holder = source.parents.get(statement)
    holder = (
        source.parents.get(holder)
        if isinstance(holder, ast.ExceptHandler | ast.match_case)
        else holder
    )
    if (
        len(block) > 1
        and block[-1] is statement
        and isinstance(holder, ast.For | ast.While | ast.If | ast.With | ast.Try)
        and not BRANCH.match(source.data, here[1])
    ):
        yield site.edit_span(
            *here,
            _reindented(site, here, source.indent(statement), source.indent(holder)),
            "indentation",
            1.0,
        )


def line_span(site: EditSite, statement: ast.stmt) -> tuple[int, int] | None:
    """Return the span of *statement*'s lines with their ends; None if it shares a line with
    another.
    """
    source = site.source
    start, end = source.span(statement)
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(node.lineno for node in decorators)])
    low = source.line_starts[first - 1]
    last = statement.end_lineno or statement.lineno
    high = source.line_starts[last] if last < len(source.line_starts) else len(source.data)
    head = source.data[source.line_starts[statement.lineno - 1] : start]
    tail = source.data[end:high].strip()
    if head.strip() or (tail and not tail.startswith(b"#")):
        return None
    return low, high


def block_of(site: EditSite, statement: ast.stmt) -> list[ast.stmt] | None:
    """Return the list of statements that contains *statement*."""
    above = site.source.parents.get(statement)
    if above is None:
        return None
    found = [block for block in blocks(above) if statement in block]
    return found[0] if found else None


def _previous(site: EditSite, statement: ast.stmt) -> ast.stmt | None:
    block = block_of(site, statement)
    index = block.index(statement) if block else 0
    return block[index - 1] if block and index else None


def is_bare_constant(statement: ast.stmt) -> bool:
    """Return whether *statement* is a docstring or another constant by itself."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _with_line_end(text: str, newline: str) -> str:
    return text if text.endswith(("\n", "\r")) else text + newline


def _reindented(site: EditSite, span: tuple[int, int], old: str, new: str) -> str:
    """Return the lines of *span* with the indentation *new* for *old*; lines inside a string are
    unchanged.
    """
    source = site.source
    lines: list[str] = []
    starts = source.line_starts
    first = bisect_left(starts, span[0])
    for number, start in enumerate(starts[first : bisect_left(starts, span[1])], first + 1):
        end = starts[number] if number < len(starts) else len(source.data)
        line = source.text(start, end)
        lines.append(
            new + line.removeprefix(old)
            if line.startswith(old) and line.strip() and number not in site.index.continued
            else line
        )
    return "".join(lines)
