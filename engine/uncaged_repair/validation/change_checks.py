"""Checks for changes that weaken tests or special-case them. They only read the text before and
after.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from uncaged_bundles.syntax import parse_module

from ..harness.results import RED
from ..project.paths import is_test_path

TEST_MARKS = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "_called_from_test", "unittest.mock")
MAX_NAMED = 8
TEST_MODULES = frozenset({"pytest", "_pytest", "unittest", "nose", "hypothesis"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """Change of one file. before, after: its bytes; None if it did not exist."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """Result of the checks: issues block the change, remarks do not."""

    issues: tuple[str, ...]
    remarks: tuple[str, ...]


def newly_unused_names(before: bytes, after: bytes) -> int:
    """Return how many variables functions used before a change, still bind after it, and no longer
    use.

    before, after: UTF-8 texts that parse.
    """
    old, new = _uses(parse_module(before)), _uses(parse_module(after))
    return sum(
        len((used - new[function][0]) & new[function][1])
        for function, (used, _) in old.items()
        if function in new
    )


def check_change(changes: Mapping[str, FileChange]) -> ChangeReport:
    """Check all files of a change."""
    issues: list[str] = []
    remarks: list[str] = []
    for path, change in sorted(changes.items()):
        if is_test_path(path):
            _check_test(change, issues, remarks)
        elif path.endswith(".py"):
            _check_source(change, issues, remarks)
    return ChangeReport(issues=tuple(issues), remarks=tuple(remarks))


def failure_issues(outcomes: Mapping[str, str]) -> list[str]:
    """Return an issue for each of the first failing tests, and one with the number of the
    others.
    """
    red = [name for name, outcome in outcomes.items() if outcome in RED]
    more = len(red) - MAX_NAMED
    return [f"{name} fails ({outcomes[name]}); make it pass" for name in red[:MAX_NAMED]] + (
        [f"and {more} more tests fail"] if more > 0 else []
    )


def _check_test(change: FileChange, issues: list[str], remarks: list[str]) -> None:
    if change.before is None and change.path.rpartition("/")[2].startswith("test_"):
        remarks.append(f"{change.path} is a new test")
    elif change.before is None:
        issues.append(f"{change.path}: changes how tests are run; leave it out")
    elif change.after is None:
        issues.append(f"{change.path}: a test file was deleted; restore it")
    else:
        issues.append(f"{change.path}: a test file was changed; restore it")


def _check_source(change: FileChange, issues: list[str], remarks: list[str]) -> None:
    before, after = change.before or b"", change.after
    if after is None:
        remarks.append(f"{change.path} was deleted")
        return
    try:
        old, new = parse_module(before), parse_module(after)
    except (SyntaxError, ValueError) as exc:
        issues.append(f"{change.path}: does not parse ({exc}); fix the syntax")
        return
    for mark in TEST_MARKS:
        if mark.encode() in after and mark.encode() not in before:
            issues.append(
                f"{change.path}: asks whether tests are running ({mark}); behave the same with and without tests"
            )
    for module in sorted((_imports(new) & TEST_MODULES) - _imports(old)):
        issues.append(f"{change.path}: product code now imports {module}; take that out")
    if _statements(new) < _statements(old) and not _added(old, new):
        remarks.append(f"{change.path}: the change only deletes")


def _uses(tree: ast.Module) -> dict[str, tuple[set[str], set[str]]]:
    """Return for each function the names that it reads and those that it binds. The key is its name
    with its position among all functions.
    """
    found: dict[str, tuple[set[str], set[str]]] = {}
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for turn, function in enumerate(functions):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        parameters = {
            argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
        }
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)} | parameters
        found[f"{function.name}:{turn}"] = read, bound
    return found


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _statements(tree: ast.Module) -> int:
    return sum(
        isinstance(node, ast.stmt) and not isinstance(node, ast.Pass) for node in ast.walk(tree)
    )


def _added(old: ast.Module, new: ast.Module) -> bool:
    known = {
        ast.dump(node)
        for node in ast.walk(old)
        if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Return)
    }
    return any(
        ast.dump(node) not in known
        for node in ast.walk(new)
        if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Return)
    )
