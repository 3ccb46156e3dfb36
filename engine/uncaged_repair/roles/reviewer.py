"""Reviewer role: checks that the whole suite passes on the changed files and that no test was
weakened for it.
"""

from __future__ import annotations

from uncaged_engine.services.git import Git

from ..harness.baseline import run_suite
from ..harness.harness import Harness
from ..harness.results import GREEN, RED
from ..task import Progress, Task
from ..validation.change_checks import FileChange, check_change, failure_issues
from .answers import answer, plural
from .changes import base_of, changed_paths, content_at


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
        progress(f"running {plural(len(collected.tests), 'test')}")
        run = run_suite(
            harness.host, collected.tests, test_s=task.limits.test_s, suite_s=task.limits.suite_s
        )
        outcomes = run.outcomes
        again = [name for name, outcome in outcomes.items() if outcome in RED]
        if 0 < len(again) <= 3:  # run again alone, as a test may be unsteady
            outcomes |= run_suite(
                harness.host, again, test_s=task.limits.test_s, suite_s=task.limits.suite_s
            ).outcomes
        issues += failure_issues(outcomes)
        if not collected.tests:
            issues.append("no tests were found")
        if len(outcomes) < len(collected.tests):
            issues.append(
                f"only {len(outcomes)} of {len(collected.tests)} tests ran in {task.limits.suite_s:g} s; raise suiteSeconds of the agent"
            )
        passed = sum(outcome == GREEN for outcome in outcomes.values())
        other = len(outcomes) - passed
        lines = [
            f"Ran {harness.project.label}, {harness.runner}: {passed} of {plural(len(outcomes), 'test')} pass"
            + (f", {other} do not or are skipped." if other else "."),
            f"Changed: {', '.join(paths) or 'nothing'}.",
            *(f"Remark: {remark}" for remark in report.remarks),
            *(f"Blocking: {issue}" for issue in issues),
        ]
    return answer(lines, {"status": "rejected" if issues else "approved", "issues": issues})
