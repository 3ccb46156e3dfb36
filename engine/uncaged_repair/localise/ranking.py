"""Suspects of a failing run: failing tests in groups with one cause each, and how suspicious each
line is for a group.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..edits.spans import LINE_END, SourceFile
from ..harness.baseline import Baseline
from ..harness.results import Line
from .spectrum import WORD, apply_hints, group_tests, ochiai

MAX_LINES = 400
MAX_IMPORTED = 200
"""Most lines that run on import; they have their own limit, so that long tests leave them in."""
BY_USE = 0.5
BY_READ = 0.8
MAX_MODULES = 50
NEAR_TOP = 0.9
IN_FUNCTION = 0.6
MAX_UNTRACED = 40
ELSEWHERE = 0.2
Read = Callable[[str], SourceFile | None]


def groups_of(baseline: Baseline, read: Read) -> list[tuple[str, ...]]:
    """Group the failing tests that probably have one cause."""
    passing = list(baseline.passed.values())
    tops: dict[str, list[str]] = {}
    for name, result in baseline.failing.items():
        lines = baseline.lines_of(name)
        suspicion = ochiai([lines], passing)
        functions = _functions({path for path, _ in lines}, read)
        places: dict[str, float] = {}
        for line, degree in suspicion.items():
            place = f"{line[0]}:{functions.get(line, '')}"
            places[place] = max(degree, places.get(place, 0.0))
        depth = {
            f"{frame.path}:{frame.function}": index for index, frame in enumerate(result.frames)
        }
        highest = max(places.values(), default=0.0)
        near = [place for place, degree in places.items() if degree >= highest * NEAR_TOP]
        tops[name] = sorted(near, key=lambda place: (-places[place], -depth.get(place, -1), place))
    ordered = dict(sorted(tops.items(), key=lambda item: len(item[1])))
    return group_tests(ordered)


def suspicion_of(
    baseline: Baseline, group: Sequence[str], read: Read, text: str, sources: Sequence[str]
) -> dict[Line, float]:
    """Return the suspiciousness of each line for the failing tests of *group*, at most 1.

    Lines that run while modules are imported are run by every test. They count as much as the lines
    that use the names they bind, times `BY_USE`; lines that store an attribute, as much as the
    lines that read it, times `BY_READ`.
    """
    lines = [baseline.lines_of(name) for name in group]
    passing = list(baseline.passed.values())
    if not any(lines):
        return _untraced(baseline, group, read, text, sources)
    found = _with_stores(ochiai(lines, passing), read)
    paths = {path for path, _ in found}
    everywhere = 1.0 / (1.0 + len(passing) / max(1, len(group))) ** 0.5
    users = _users(found, read)
    imported: dict[Line, float] = {}
    near = {path.rpartition("/")[0] for path in paths}
    beside = sorted(
        set(baseline.collected.imported) - paths,
        key=lambda path: (path.rpartition("/")[0] not in near, path),
    )
    for path in sorted(paths | set(beside[:MAX_MODULES])):
        source = read(path)
        if source is None:
            continue
        share = 0.5 if path in paths else 0.25
        called = {line for place, line, _ in baseline.collected.called if place == path}
        for number, names in _import_lines(source.tree, called).items():
            used = max((users.get(name, 0.0) for name in names), default=0.0)
            imported.setdefault((path, number), max(everywhere * share, used * BY_USE))
    functions = _functions({path for path, _ in (*found, *imported)}, read)
    frames = [baseline.failing[name].frames for name in group]
    ran = apply_hints(found, frames, functions, text, tested=_tested(group))
    others = {line: degree for line, degree in imported.items() if line not in found}
    return _best(ran, MAX_LINES) | _best(others, MAX_IMPORTED)


def _with_stores(suspicion: Mapping[Line, float], read: Read) -> dict[Line, float]:
    """Return *suspicion* with the lines that store an attribute raised to those that read it, times
    `BY_READ`: a wrong value does no harm before it is read.
    """
    stored: dict[str, list[Line]] = {}
    readers: dict[str, float] = {}
    for path in sorted({path for path, _ in suspicion}):
        source = read(path)
        for node in ast.walk(source.tree) if source is not None else ():
            line = (path, getattr(node, "lineno", 0))
            if not isinstance(node, ast.Attribute) or line not in suspicion:
                continue
            if isinstance(node.ctx, ast.Store):
                stored.setdefault(node.attr, []).append(line)
            else:
                readers[node.attr] = max(suspicion[line], readers.get(node.attr, 0.0))
    found = dict(suspicion)
    for name, lines in stored.items():
        for line in lines:
            found[line] = max(found[line], readers.get(name, 0.0) * BY_READ)
    return found


def _best(degrees: Mapping[Line, float], most: int) -> dict[Line, float]:
    ordered = sorted(degrees.items(), key=lambda item: (-item[1], item[0]))[:most]
    return {line: degree for line, degree in ordered if degree > 0}


def _users(suspicion: Mapping[Line, float], read: Read) -> dict[str, float]:
    """Return for each word the suspiciousness of the most suspicious line that has it."""
    found: dict[str, float] = {}
    for path in {path for path, _ in suspicion}:
        source = read(path)
        lines = LINE_END.split(source.data) if source is not None else []
        for number, line in enumerate(lines, 1):
            degree = suspicion.get((path, number), 0.0)
            for word in WORD.findall(line.decode()) if degree > 0 else ():
                found[word] = max(degree, found.get(word, 0.0))
    return found


def _tested(group: Sequence[str]) -> str:
    """Return the names of the tests as words."""
    return " ".join(name.partition("::")[2].partition("[")[0].lower() for name in group)


def _untraced(
    baseline: Baseline, group: Sequence[str], read: Read, text: str, sources: Sequence[str]
) -> dict[Line, float]:
    """Return the suspiciousness of lines where none were traced, because another process ran them:
    the places that the output names, then the functions around them.

    If it names none, all lines of the first *sources* are equal.
    """
    stacks = [baseline.failing[name].frames for name in group]
    named = {(frame.path, frame.line) for stack in stacks for frame in stack}
    paths = {path for path, _ in named if read(path) is not None} or set(sources[:MAX_UNTRACED])
    functions = _functions(paths, read)
    around = {functions[line] for line in named if line in functions}
    found = {line: IN_FUNCTION if name in around else ELSEWHERE for line, name in functions.items()}
    for path in paths:
        source = read(path)
        found |= (
            dict.fromkeys(((path, line) for line in _import_lines(source.tree, set())), ELSEWHERE)
            if source is not None
            else {}
        )
    found |= {line: 1.0 for line in named if line[0] in paths}
    ranked = apply_hints(found, stacks, functions, text)
    return dict(sorted(ranked.items(), key=lambda item: (-item[1], item[0]))[:MAX_LINES])


def _functions(paths: set[str], read: Read) -> dict[Line, str]:
    """Return the name of the innermost function around each line of *paths*."""
    found: dict[Line, str] = {}
    for path in paths:
        source = read(path)
        if source is not None:
            for function in _outer_first(source.tree):
                for line in range(function.lineno, (function.end_lineno or function.lineno) + 1):
                    found[path, line] = function.name
    return found


def _outer_first(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _import_lines(tree: ast.Module, called: set[int]) -> dict[int, tuple[str, ...]]:
    """Return the lines that run on import, each with the names that it binds: those outside
    functions, decorators and defaults, and those of functions that were *called* then.
    """
    found: dict[int, tuple[str, ...]] = {}
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(node, ()) for node in tree.body]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            last = (node.end_lineno or first) + 1 if first in called else node.body[0].lineno
            found |= dict.fromkeys(range(first, last), (node.name, *around))
        elif isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found |= dict.fromkeys(range(first, node.body[0].lineno), (node.name,))
            waiting += [(inner, (node.name,)) for inner in node.body]
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            names = tuple(part.id for part in _bound(node))
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            found |= dict.fromkeys(lines, names or around)
    return found


def _bound(statement: ast.stmt) -> Iterator[ast.Name]:
    return (
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
