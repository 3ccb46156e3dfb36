"""Edits that pass the tests without being a repair, recognised from the syntax trees before and
after: they hide the failing line from the test, or put a name for data that is none.

| Edit | Committed |
|---|---|
| unconditional `return`, `continue` or `break` before other statements | no: they never run |
| a condition, or what decides it, made constant (`x == x`, too) | no: one branch never runs |
| `== "text"` made `in "text"`, or made an order (not of digits) | no: parts of it pass as well |
| the statement that fails deleted, a failing `raise` too | no: the cause remains |
| the call that fails deleted | no: the same |
| all exceptions caught and dropped | no: every other failure is hidden as well |
| a value in a message replaced by a constant of the module | no: the message says nothing |
| a module, a logger or a type variable for a value | no: it is no data |
| a class or a function for a value; the only recursion removed | if no other edit passes |
| a name left unused; a deletion elsewhere; a weaker check | if no other edit passes |
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uncaged_bundles.syntax import parse_module

from ..edits.edit import SourceEdit
from ..edits.spans import SourceFile
from ..harness.results import Frame
from ..project.paths import is_test_path
from .condition_checks import constant_condition, loosened_text

BROAD = frozenset({"Exception", "BaseException"})
MESSAGES = frozenset(
    {"format", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print"}
)
MAKERS = {"TypeVar": "type variable", "ParamSpec": "type variable", "getLogger": "logger"}
OBJECTS = frozenset({"class", "function"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausibility:
    """Judgement of an edit. hides: why it is no repair, as the end of the sentence "it …"; empty if
    it may be one. doubt: why it is chosen only if no other edit passes; empty if there is none.
    """

    hides: str = ""
    doubt: str = ""


PLAUSIBLE = Plausibility()
"""Judgement of an edit that nothing speaks against."""


def plausibility(
    source: SourceFile, edit: SourceEdit, frames: Sequence[Frame] = ()
) -> Plausibility:
    """Judge an edit that passes all tests. frames: of the failing test's traceback, outermost
    first; they lie in the repository.
    """
    changed = edit.apply(source.data)
    first, last = edit.line_at(source), _last_line(source, edit)
    before = _around(source.tree, first, last)
    after = _around(parse_module(changed), first, first + edit.after.count("\n"))
    own = frames if frames and not is_test_path(frames[-1].path) else ()
    names = _names_of_objects(source.tree)
    hides = (
        _unreachable(before, after)
        or constant_condition(before, after)
        or loosened_text(before, after)
        or _removed_failure(source, edit, own, (first, last))
        or _dropped_exceptions(before, after)
        or _constant_message(source.tree, before, after)
    )
    stand_in = _stand_in(before, after, names)
    if not hides and stand_in and stand_in[1] not in OBJECTS:
        hides = f"uses the {stand_in[1]} `{stand_in[0]}` as a value"
    doubt = f"uses the {stand_in[1]} `{stand_in[0]}` as a value" if stand_in else ""
    return Plausibility(hides=hides, doubt=doubt or _lost_recursion(before, after))


def _last_line(source: SourceFile, edit: SourceEdit) -> int:
    end = max(edit.start, edit.end - 1)
    return sum(1 for start in source.line_starts if start <= end)


def _around(tree: ast.Module, first: int, last: int) -> ast.AST:
    """Return the innermost function around the lines; else the innermost class; else the module."""
    found: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            start = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if start <= first and last <= (node.end_lineno or 0):
                found = node  # later nodes of the walk lie deeper
    return found


def _unreachable(before: ast.AST, after: ast.AST) -> str:
    """Say whether statements after a jump no longer run."""
    old, new = set(_skipped(before)), list(_skipped(after))
    for jump, count in new:
        if (jump, count) not in old and count > max(
            (number for known, number in old if known == jump), default=0
        ):
            return "jumps over the rest of the block"
    return ""


def _skipped(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for index, statement in enumerate(block[:-1]):
                if isinstance(statement, ast.Return | ast.Continue | ast.Break):
                    yield ast.dump(statement), len(block) - index - 1
                    break


def _removed_failure(
    source: SourceFile, edit: SourceEdit, frames: Sequence[Frame], lines: tuple[int, int]
) -> str:
    """Say whether the edit takes away the statement, or the call in it, that fails."""
    for index, frame in enumerate(frames):
        if frame.path != edit.path or not lines[0] <= frame.line <= lines[1]:
            continue
        removed = edit.nature == "delete" or edit.after.strip() in ("", "pass")
        if removed and _is_statement(source, edit):
            return "deletes the statement that fails"
        if index + 1 < len(frames):
            called = frames[index + 1].function
            if _calls(edit.before, called) and not _calls(edit.after, called):
                text = edit.after.strip()
                if len(text) < len(edit.before.strip()) and text in edit.before:
                    return f"removes the call of `{called}`, which fails"
        elif edit.before.lstrip().startswith("raise ") and "raise" not in edit.after:
            return "removes the `raise` that fails"
    return ""


def _is_statement(source: SourceFile, edit: SourceEdit) -> bool:
    """Return whether the edit replaces whole statements."""
    try:
        body = parse_module(_dedented(edit.before)).body
    except (SyntaxError, ValueError):
        return False
    line_start = source.line_starts[edit.line_at(source) - 1]
    return bool(body) and not source.data[line_start : edit.start].strip()


def _dedented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _calls(text: str, name: str) -> bool:
    return f"{name}(" in text.replace(" ", "")


def _dropped_exceptions(before: ast.AST, after: ast.AST) -> str:
    found = _count_dropping(after) > _count_dropping(before)
    return "catches all exceptions and drops them" if found else ""


def _count_dropping(tree: ast.AST) -> int:
    return sum(
        (
            node.type is None
            or bool(BROAD & {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)})
        )
        and all(isinstance(item, ast.Pass | ast.Continue) for item in node.body)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
    )


def _constant_message(module: ast.Module, before: ast.AST, after: ast.AST) -> str:
    """Say whether a value in a message was replaced by a constant of the module."""
    constants = {
        target.id
        for statement in module.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    }
    old, new = _in_messages(before), _in_messages(after)
    added = sorted(name for name in constants if new.count(name) > old.count(name))
    lost = [name for name in set(old) - constants if new.count(name) < old.count(name)]
    if added and lost:
        return f"replaces a value in a message by the constant `{added[0]}`"
    return ""


def _in_messages(tree: ast.AST) -> list[str]:
    """Return the names that are read inside messages: of exceptions, logs and formatted strings."""
    parts: dict[int, ast.AST] = {}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr() | ast.Raise(exc=ast.Call()):
                parts[id(node)] = node
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
                if name in MESSAGES:
                    parts[id(node)] = node
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
                parts[id(node)] = node
            case _:
                pass
    names = {
        id(inner): inner.id
        for part in parts.values()
        for inner in ast.walk(part)
        if isinstance(inner, ast.Name)
    }
    return list(names.values())


def _names_of_objects(module: ast.Module) -> dict[str, str]:
    """Return the module's names that hold no data, with the kind of each."""
    found: dict[str, str] = {}
    for node in module.body:
        match node:
            case ast.Import(names=names):
                found |= {(item.asname or item.name).partition(".")[0]: "module" for item in names}
            case ast.ClassDef(name=name):
                found[name] = "class"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = "function"
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=maker)):
                made = maker.attr if isinstance(maker, ast.Attribute) else getattr(maker, "id", "")
                if made in MAKERS:
                    found[name] = MAKERS[made]
            case _:
                pass
    return found


def _stand_in(before: ast.AST, after: ast.AST, kinds: dict[str, str]) -> tuple[str, str] | None:
    """Return a name that the edit puts where a value belongs, with its kind."""
    old, new = _as_values(before), _as_values(after)
    for name in sorted(set(new)):
        if name in kinds and new.count(name) > old.count(name):
            return name, kinds[name]
    return None


def _as_values(tree: ast.AST) -> list[str]:
    """Return the names that are read as operands, returned, subscripted, or compared in order."""
    found: list[str] = []
    for node in ast.walk(tree):
        operands: list[ast.expr | None] = []
        match node:
            case ast.BinOp(left=left, right=right):
                operands = [left, right]
            case ast.BoolOp(values=values):
                operands = list(values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not any(
                    isinstance(item, ast.Is | ast.IsNot | ast.Eq | ast.NotEq | ast.In)
                    for item in ops
                ):
                    operands = [left, *others]
            case ast.Subscript(slice=index):
                operands = [index]
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                operands = [test]
            case ast.For(iter=iterated) | ast.FormattedValue(value=iterated):
                operands = [iterated]
            case ast.Call(func=function, args=arguments):
                if getattr(function, "id", getattr(function, "attr", "")) in MESSAGES:
                    operands = list(arguments)
            case _:
                pass
        found += [item.id for item in operands if isinstance(item, ast.Name)]
    return found


def _lost_recursion(before: ast.AST, after: ast.AST) -> str:
    if not isinstance(before, Function) or not isinstance(after, Function):
        return ""
    if _recurses(before) and not _recurses(after):
        return "removes the only recursion"
    return ""


def _recurses(function: Function) -> bool:
    return any(
        isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == function.name
        for node in ast.walk(function)
    )
