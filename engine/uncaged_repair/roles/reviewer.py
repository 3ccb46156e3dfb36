"""Reviewer role: checks that the whole suite passes on the changed files and that no test was
weakened for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncaged_engine.services.git import Git

from ..harness.baseline import run_suite
from ..harness.harness import Harness
from ..harness.library_bytecode import drop_bytecode
from ..harness.results import GREEN, RED
from ..task import Progress, Task
from ..validation.change_checks import FileChange, check_change, failure_issues
from .answers import answer, list_names, plural
from .changes import base_of, changed_paths, content_at
from .scope import part_run, scope_of
from .summary import doubts

MAX_AGAIN = 3


def review(task: Task, progress: Progress) -> str:
    """Return the reviewer's answer."""
    with Harness(task, progress) as harness:
        top = harness.project.top
        git = Git(directory=top, environment=task.environment)
        base = base_of(task, git)
        paths = changed_paths(git, base)
        changes = {
            path: FileChange(
                path=path,
                before=content_at(git, base, path),
                after=(top / path).read_bytes() if (top / path).is_file() else None,
            )
            for path in paths
        }
        report = check_change(changes)
        issues = list(report.issues) if paths else ["nothing was changed"]
        collected = harness.collect()
        issues += [
            f"{path or 'the suite'} cannot be collected: {' '.join(message.split())[-200:]}"
            for path, message in collected.errors
        ]
        scope = scope_of(task)
        tests = scope.part_of(collected.tests)
        progress(f"running {plural(len(tests), 'test')}")
        outcomes = _outcomes(harness, tests, scope.suite_s(task.limits.suite_s))
        left = [name for name in scope.left_alone if outcomes.get(name) in RED]
        issues += failure_issues(
            {name: outcome for name, outcome in outcomes.items() if name not in left}
        )
        if not collected.tests:
            issues.append("no tests were found")
        if len(outcomes) < len(tests):
            issues.append(
                f"only {len(outcomes)} of {plural(len(tests), 'test')} ran in time; run again with --agent-option suiteSeconds=600"
            )
        passed = sum(outcome == GREEN for outcome in outcomes.values())
        other = len(outcomes) - passed
        lines = [
            f"Ran {harness.project.label}, {harness.runner}: {passed} of {plural(len(outcomes), 'test')} pass"
            + (f", {other} do not or are skipped" if other else "")
            + f"{part_run(len(outcomes), len(collected.tests))}.",
            f"Changed: {', '.join(paths) or 'nothing'}.",
            *([f"Left alone, they fail as before: {list_names(sorted(left))}."] if left else []),
            *(f"Remark: {remark}" for remark in (*report.remarks, *doubts(task))),
            *(f"Blocking: {issue}" for issue in issues),
        ]
    if not issues:
        drop_bytecode(task.scratch)  # no test runs after this
    return answer(lines, {"status": "rejected" if issues else "approved", "issues": issues})


def _outcomes(harness: Harness, tests: Sequence[str], suite_s: float) -> dict[str, str]:
    """Run *tests* and return their outcomes. A few that fail are run again alone, as they may be
    unsteady.
    """
    test_s = harness.task.limits.test_s
    outcomes = run_suite(harness.host, tests, test_s=test_s, suite_s=suite_s).outcomes
    again = [name for name, outcome in outcomes.items() if outcome in RED]
    if 0 < len(again) <= MAX_AGAIN:
        outcomes |= run_suite(harness.host, again, test_s=test_s, suite_s=suite_s).outcomes
    return outcomes
