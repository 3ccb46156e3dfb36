"""Wrong statements: one too many, out of order, one level too deep or too shallow, a result that is not returned or assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..spans import blocks
from .edit import Edit
from .scene import Function, Scene

SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Delete | ast.Assert


def rewrites(scene: Scene) -> Iterator[Edit]:
    """The same parts in another statement: returned, yielded, assigned, looped."""
    statement = scene.statement
    start, end = scene.source.span(statement)
    match statement:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr(value=value) if scene.function is not None:
            if not isinstance(value, ast.Yield | ast.YieldFrom):
                yield scene.edit(statement, f"return {scene.segment(value)}", "return added", 0.5)
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                base = scene.segment(value.func.value)
                yield scene.edit(
                    statement, f"{base} = {scene.segment(value)}", "result assigned", 0.4 if isinstance(value.func.value, ast.Name) else 0.2
                )
                if len(value.args) == 1:
                    yield scene.edit(statement, f"{base} = {scene.segment(value.args[0])}", "result assigned", 0.25)
            if isinstance(value, ast.Compare) and len(value.ops) == 1:
                yield scene.edit(statement, f"{scene.segment(value.left)} = {scene.segment(value.comparators[0])}", "result assigned", 0.6)
        case ast.Return(value=ast.expr() as value):
            yield scene.edit_span(start, start + len("return"), "yield", "yield", 0.1)
            for rank, name in enumerate(name for name in scene.names if name not in ("self", "cls")):
                if rank < 10:
                    text = scene.segment(value)
                    weight = (0.25 if scene.names[name] & {"list", "str", "int", "float", "tuple"} else 0.1) / (1 + 0.2 * rank)
                    yield scene.edit(value, f"{name} + {text}", "operand added", weight)
        case ast.Return(value=None):
            for rank, name in enumerate(list(scene.names)[:8]):
                yield scene.edit(statement, f"return {name}", "return added", 0.35 / (1 + 0.2 * rank))
        case ast.If():
            if scene.source.data[start:].startswith(b"elif"):
                yield scene.edit_span(start, start + 4, "if", "branch", 0.4)
            else:
                yield scene.edit_span(start, start + 2, "while", "loop", 0.3)
                above = scene.source.parents.get(statement)
                if isinstance(_before(scene, statement), ast.If) and not isinstance(above, ast.Module):
                    yield scene.edit_span(start, start + 2, "elif", "branch", 0.4)
        case ast.While(orelse=[]):
            yield scene.edit_span(start, start + 5, "if", "loop", 0.3)
        case ast.Break():
            yield scene.edit(statement, "continue", "jump", 0.6)
            yield scene.edit(statement, "pass", "jump", 0.3, "delete")
        case ast.Continue():
            yield scene.edit(statement, "break", "jump", 0.6)
        case ast.Assign(targets=[ast.Subscript(value=base, slice=index)]):
            inner = scene.names
            for rank, name in enumerate(
                name for name in inner if inner[name] & {"dict", "list", "defaultdict"} and name != scene.segment(base)
            ):
                yield scene.edit(base, name, "variable", 0.3 / (1 + 0.2 * rank))
            if isinstance(index, ast.Tuple):
                for part in index.elts:
                    yield scene.edit(index, scene.segment(part), "index", 0.15)


def removals(scene: Scene) -> Iterator[Edit]:
    """The statement left out."""
    statement = scene.statement
    if (
        isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass | Function | ast.ClassDef | ast.Global | ast.Nonlocal)
        or whole_lines(scene, statement) is None
    ):
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return
    weight = 0.35 if isinstance(statement, SIMPLE) else 0.15
    yield scene.edit(statement, "pass", "statement removed", weight, "delete")


def moves(scene: Scene) -> Iterator[Edit]:
    """The statement before the one above it; out of its block; into the block above it."""
    statement = scene.statement
    here = whole_lines(scene, statement)
    block = block_of(scene, statement)
    if here is None or block is None or isinstance(statement, Function | ast.ClassDef):
        return
    source, index = scene.source, block.index(statement)
    text = source.text(*here)
    if (
        index
        and (above := whole_lines(scene, block[index - 1])) is not None
        and not isinstance(block[index - 1], Function | ast.ClassDef | ast.Import | ast.ImportFrom)
    ):
        between = source.text(above[1], here[0])
        if not _documentation(block[index - 1]):
            yield scene.edit_span(above[0], here[1], _ended(text, source.newline) + between + source.text(*above), "statement order", 0.4)
        inner = list(blocks(block[index - 1]))
        if (
            inner
            and isinstance(block[index - 1], ast.For | ast.While | ast.If | ast.With | ast.Try)
            and not isinstance(statement, Function)
        ):
            deeper = _reindented(scene, here, source.indent(statement), source.indent(inner[-1][-1]))
            yield scene.edit_span(*here, deeper, "indentation", 0.35)
    holder = source.parents.get(statement)
    holder = source.parents.get(holder) if isinstance(holder, ast.ExceptHandler | ast.match_case) else holder
    if (
        len(block) > 1
        and block[-1] is statement
        and isinstance(holder, ast.For | ast.While | ast.If | ast.With | ast.Try)
        and not source.data[here[1] :].lstrip().startswith((b"else", b"elif", b"except", b"finally"))
    ):
        yield scene.edit_span(*here, _reindented(scene, here, source.indent(statement), source.indent(holder)), "indentation", 0.6)


def whole_lines(scene: Scene, statement: ast.stmt) -> tuple[int, int] | None:
    """Return the span of *statement*'s lines with their ends; None when it shares a line with something else."""
    source = scene.source
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


def block_of(scene: Scene, statement: ast.stmt) -> list[ast.stmt] | None:
    """Return the list of statements that *statement* stands in."""
    above = scene.source.parents.get(statement)
    if above is None:
        return None
    found = [block for block in blocks(above) if statement in block]
    return found[0] if found else None


def _before(scene: Scene, statement: ast.stmt) -> ast.stmt | None:
    block = block_of(scene, statement)
    index = block.index(statement) if block else 0
    return block[index - 1] if block and index else None


def _documentation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _ended(text: str, newline: str) -> str:
    return text if text.endswith(("\n", "\r")) else text + newline


def _reindented(scene: Scene, span: tuple[int, int], old: str, new: str) -> str:
    """Return the lines of *span* with *new* for their *old* beginning; lines inside a string keep theirs."""
    source = scene.source
    inside = {
        line
        for node in ast.walk(scene.statement)
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }
    lines: list[str] = []
    for number, start in enumerate(source.line_starts, 1):
        if span[0] <= start < span[1]:
            end = source.line_starts[number] if number < len(source.line_starts) else len(source.data)
            line = source.text(start, end)
            lines.append(new + line.removeprefix(old) if line.startswith(old) and line.strip() and number not in inside else line)
    return "".join(lines)
