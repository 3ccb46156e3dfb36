"""Reviewer role: verifies that the whole suite passes on the changed files, and that no test was
weakened for it.
"""

from __future__ import annotations

from uncaged_engine.services.git import Git

from .answers import answer, counted
from .baseline import run_suite
from .changes import base_of, changed_paths, content_at
from .guards import FileChange, judge_change, judge_outcomes
from .laboratory import Laboratory
from .results import GREEN, RED
from .task import Progress, Task


def review(task: Task, progress: Progress) -> str:
    """Return the reviewer's answer."""
    with Laboratory(task, progress) as laboratory:
        top = laboratory.setting.top
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
        judged = judge_change(changes)
        issues = list(judged.issues) if paths else ["nothing was changed"]
        collected = laboratory.collect()
        issues += [
            f"{path or 'the suite'} cannot be collected: {' '.join(message.split())[-200:]}"
            for path, message in collected.errors
        ]
        progress(f"running {counted(len(collected.tests), 'test')}")
        run = run_suite(
            laboratory.host, collected.tests, test_s=task.limits.test_s, suite_s=task.limits.suite_s
        )
        outcomes = run.outcomes
        again = [name for name, outcome in outcomes.items() if outcome in RED]
        if 0 < len(again) <= 3:  # once more, alone: an unsteady test is no verdict
            outcomes |= run_suite(
                laboratory.host, again, test_s=task.limits.test_s, suite_s=task.limits.suite_s
            ).outcomes
        issues += judge_outcomes(outcomes)
        if not collected.tests:
            issues.append("no tests were found")
        if len(outcomes) < len(collected.tests):
            issues.append(
                f"only {len(outcomes)} of {len(collected.tests)} tests ran in {task.limits.suite_s:g} s; raise suiteSeconds of the agent"
            )
        passed = sum(outcome == GREEN for outcome in outcomes.values())
        other = len(outcomes) - passed
        lines = [
            f"Ran {laboratory.setting.label}, {laboratory.runner}: {passed} of {counted(len(outcomes), 'test')} pass"
            + (f", {other} do not or are skipped." if other else "."),
            f"Changed: {', '.join(paths) or 'nothing'}.",
            *(f"Remark: {remark}" for remark in judged.remarks),
            *(f"Blocking: {issue}" for issue in issues),
        ]
    return answer(lines, {"status": "rejected" if issues else "approved", "issues": issues})
