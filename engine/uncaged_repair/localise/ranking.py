"""Suspects of a failing run: failing tests in groups with one cause each, and how suspicious each
line is for a group.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from ..edits.spans import SourceFile
from ..harness.baseline import Baseline
from ..harness.results import Line
from .spectrum import apply_hints, group_tests, ochiai

MAX_LINES = 400
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

    Lines that run while modules are imported are run by every test; they come last.
    """
    lines = [baseline.lines_of(name) for name in group]
    passing = list(baseline.passed.values())
    if not any(lines):
        return _untraced(baseline, group, read, text, sources)
    found = ochiai(lines, passing)
    paths = {path for path, _ in found}
    everywhere = 1.0 / (1.0 + len(passing) / max(1, len(group))) ** 0.5
    for path in sorted(
        paths | set(baseline.collected.imported)
        if len(baseline.collected.imported) <= 50
        else paths
    ):
        source = read(path)
        if source is not None:
            share = 0.5 if path in paths else 0.25
            for number in _import_lines(
                source.tree, {line for place, line, _ in baseline.collected.called if place == path}
            ):
                found.setdefault((path, number), everywhere * share)
    functions = _functions({path for path, _ in found}, read)
    ranked = apply_hints(found, [baseline.failing[name].frames for name in group], functions, text)
    best = sorted(ranked.items(), key=lambda item: (-item[1], item[0]))[:MAX_LINES]
    return {line: degree for line, degree in best if degree > 0}


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
            {(path, number): ELSEWHERE for number in _import_lines(source.tree, set())}
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


def _import_lines(tree: ast.Module, called: set[int]) -> set[int]:
    """Return the lines that run on import: those outside functions, and those of functions that
    were *called* then.
    """
    found: set[int] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found |= set(range(first, node.body[0].lineno))
            if first in called:
                found |= set(range(first, (node.end_lineno or first) + 1))
        elif isinstance(node, ast.ClassDef):
            waiting += node.body
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found
