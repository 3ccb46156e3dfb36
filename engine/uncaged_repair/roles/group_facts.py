"""Facts about tests for the comparison with an issue's text: the source of each test function, and
the files and functions that failing tests run.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ..edits.spans import UnreadableSource, read_source
from ..harness.baseline import Baseline
from ..harness.harness import Harness
from ..harness.results import Line
from .relation import GroupFacts, SuiteFacts
from .stems import stems_of

MAX_OTHERS = 2000
"""Number of passing tests that are read to find which words are rare."""


def facts_of(
    harness: Harness, baseline: Baseline, groups: Sequence[Sequence[str]]
) -> tuple[list[GroupFacts], SuiteFacts]:
    """Return the facts of each group of failing tests, and of the suite."""
    texts = TestTexts(harness.project.top, harness.project.inside)
    found = [_group(harness, baseline, tuple(group), texts) for group in groups]
    having: Counter[str] = Counter()
    read = baseline.green[:MAX_OTHERS]
    for name in read:
        having.update(stems_of(f"{name} {texts.text(name)}"))
    return found, SuiteFacts(passing=len(read), having=having, name=_name_words(harness))


class TestTexts:
    """Reader of the source of test functions, by the name of the test."""

    __test__ = False  # pytest would collect it by its name

    def __init__(self, top: Path, inside: str) -> None:
        self._places = (top / inside, top)
        self._functions = cache(_functions_in)

    def text(self, name: str) -> str:
        """Return the source of the test *name*; empty if it is not found."""
        path, function = self._place(name.partition("[")[0])
        return self._functions(path).get(function, "") if path is not None else ""

    def _place(self, name: str) -> tuple[Path | None, str]:
        """Return the file of a test and its function: of pytest's names, else of dotted ones."""
        if "::" in name:
            file, _, rest = name.partition("::")
            return self._found(file), rest.replace("::", ".")
        parts = name.split(".")
        for number in range(len(parts) - 1, 0, -1):
            path = self._found("/".join(parts[:number]) + ".py")
            if path is not None:
                return path, ".".join(parts[number:])
        return None, ""

    def _found(self, path: str) -> Path | None:
        return next((place / path for place in self._places if (place / path).is_file()), None)


def _functions_in(path: Path) -> dict[str, str]:
    """Return the source of the functions of a file by name, methods as ``Class.method``."""
    try:
        source = read_source(path.name, path.read_bytes())
    except (OSError, UnreadableSource):
        return {}
    found: dict[str, str] = {}
    waiting: list[tuple[str, ast.stmt]] = [("", node) for node in source.tree.body]
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            waiting += [(f"{prefix}{node.name}.", child) for child in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[f"{prefix}{node.name}"] = source.segment(node)
    return found


def _group(
    harness: Harness, baseline: Baseline, tests: tuple[str, ...], texts: TestTexts
) -> GroupFacts:
    lines = frozenset(line for name in tests for line in baseline.lines_of(name))
    passing = list(baseline.passed.values())
    files: dict[str, set[Line]] = {}
    functions: dict[str, set[Line]] = {}
    for path in sorted({path for path, _ in lines}):
        inside = _bodies(harness, path)
        for line in lines:
            if line[0] == path and line[1] in inside:
                files.setdefault(path, set()).add(line)
                for name in inside[line[1]]:
                    functions.setdefault(name, set()).add(line)

    def shares(places: Mapping[str, set[Line]]) -> dict[str, float]:
        return {
            name: sum(not seen.isdisjoint(held) for held in passing) / max(1, len(passing))
            for name, seen in places.items()
        }

    errors = [error for name in tests if (error := baseline.failing[name].error) is not None]
    return GroupFacts(
        tests=tests,
        source="\n".join(dict.fromkeys(texts.text(name) for name in tests)),
        errors=tuple(dict.fromkeys(errors)),
        files=shares(files),
        functions=shares(functions),
    )


def _bodies(harness: Harness, path: str) -> dict[int, tuple[str, ...]]:
    """Return the lines inside of functions, with the names of the functions and classes around
    each. Lines that run on import are left out: every test runs them.
    """
    source = harness.source(path)
    found: dict[int, tuple[str, ...]] = {}
    waiting: list[tuple[tuple[str, ...], ast.stmt]] = (
        [((), node) for node in source.tree.body] if source is not None else []
    )
    while waiting:
        around, node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            waiting += [((*around, node.name), child) for child in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = (*around, node.name)
            for line in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = names
    return found


def _name_words(harness: Harness) -> frozenset[str]:
    """Return the words of the repository's name: of its directory and its packages. A repository of
    one file has none, since its name is that of its subject.
    """
    if len(harness.sources) < 2:
        return frozenset()
    packages = {
        part
        for path in harness.sources
        for part in Path(path).parts[:-1][:2]
        if part not in ("src", "lib")
    }
    return frozenset().union(
        *(stems_of(name) for name in (harness.repository.name, *sorted(packages)))
    )
