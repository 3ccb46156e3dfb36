"""Planner role: runs the tests and plans one phase for each group of failing ones. Without a
failing test it says what else could work.
"""

from __future__ import annotations

from ..harness.baseline import Baseline
from ..harness.harness import Harness
from ..harness.results import RED, Collected
from ..localise.ranking import groups_of, suspicion_of
from ..task import Progress, Task
from .answers import answer, list_names, plural
from .phases import acceptance_of

MAX_PHASES = 6
SHOWN_PLACES = 6
OTHER_AGENT = (
    "To work from a description, run it with another agent, as in --agent claude (`uncaged-workflow agents` lists those that are here); "
    "or add a test that fails because of the problem, commit it, and run again"
)


def plan(task: Task, progress: Progress) -> str:
    """Return the planner's answer."""
    with Harness(task, progress) as harness:
        collected = harness.collect()
        where = f"{harness.project.label}, {harness.runner}"
        if collected.errors or not collected.tests:
            return _aborted(_why_not_collected(collected, where))
        baseline = harness.measure(collected)
        if not baseline.failing:
            return _aborted(_why_nothing_to_do(baseline, where))
        return _planned(harness, baseline, where)


def _planned(harness: Harness, baseline: Baseline, where: str) -> str:
    groups = groups_of(baseline, harness.source)
    if len(groups) > MAX_PHASES:
        groups = [
            *groups[: MAX_PHASES - 1],
            tuple(name for group in groups[MAX_PHASES - 1 :] for name in group),
        ]
    lines = [
        f"Ran {where}: {len(baseline.red)} of {plural(len(baseline.outcomes), 'test')} fail.",
        *(
            [f"Time was up before all {len(baseline.collected.tests)} tests had run."]
            if not baseline.complete
            else []
        ),
        *(
            [f"Not planned for, they pass when run alone: {list_names(baseline.unsteady)}."]
            if baseline.unsteady
            else []
        ),
    ]
    phases = []
    for number, group in enumerate(groups, 1):
        suspicion = suspicion_of(
            baseline, group, harness.source, harness.task.text, harness.sources
        )
        places = sorted(suspicion.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_PLACES]
        suspects = ", ".join(f"{path}:{line} ({degree:.2f})" for (path, line), degree in places)
        error = baseline.failing[group[0]].error
        error_text = (
            f" The first fails with {error[0]}: {' '.join(error[1].split())[:160]}"
            if error is not None
            else ""
        )
        name, tests = f"repair-{number}", plural(len(group), "failing test")
        description = f"Find a small edit that makes {tests} pass. Most suspicious lines: {suspects or 'none known'}.{error_text}"
        phases.append(
            {"name": name, "description": description, "acceptance": acceptance_of(group)}
        )
        lines += [
            "",
            f"{name}: {list_names(group)}",
            f"  suspicious: {suspects or 'no line of the repository was seen'}",
            *([f" {error_text}"] if error_text else []),
        ]
    return answer(lines, {"status": "planned", "phases": phases})


def _aborted(reason: str) -> str:
    return answer([reason], {"status": "aborted", "reason": reason})


def _why_not_collected(collected: Collected, where: str) -> str:
    """Return the reason why no search begins: there are no tests, or not all of them can be loaded.
    A suite that is not whole cannot be seen to pass.
    """
    if collected.end == "timeout":
        hangs = "perhaps a module hangs when it is imported"
        return f"the tests could not be collected in time ({where}); {hangs}. Give --test-command for a part of them"
    if collected.end != "finished":
        return f"the process that collects the tests ended unexpectedly ({where}); run the tests by hand, or give --test-command"
    if not collected.errors:
        return f"no tests found ({where}). The built-in repair works from a failing test alone. {OTHER_AGENT}"
    first = " ".join(_error_lines(collected.errors[0][1]).split())
    paths = list_names([path for path, _ in collected.errors if path]) or "the tests"
    text = "\n".join(message for _, message in collected.errors)
    if "SyntaxError" in text or "IndentationError" in text:
        return f"{paths} cannot be collected ({where}): a file does not parse: {first}. Fix it by hand or with another agent"
    if "ModuleNotFoundError" in text or "ImportError" in text or "No module named" in text:
        next_step = "Install what the repository needs into its .venv, or give --test-command for tests that can run, then run again"
        return f"{paths} cannot be imported ({where}): {first}. {next_step}"
    return f"{paths} cannot be collected ({where}): {first}"


def _why_nothing_to_do(baseline: Baseline, where: str) -> str:
    total = len(baseline.outcomes)
    if baseline.unsteady:
        chance = "that depends on order or chance, which no small edit settles"
        return f"of {plural(total, 'test')}, {list_names(baseline.unsteady)} failed, but not when run alone ({where}): {chance}"
    if not baseline.complete:
        next_step = "raise suiteSeconds of the agent, or give --test-command for a part"
        return f"{total} of {len(baseline.collected.tests)} tests ran before time was up, and none fails ({where}); {next_step}"
    failed = [name for name, outcome in baseline.outcomes.items() if outcome in RED]
    if failed:
        return f"{list_names(failed)} failed once and could not be run again ({where})"
    return f"all {plural(total, 'test')} pass ({where}), and the built-in repair works from a failing test alone. {OTHER_AGENT}"


def _error_lines(message: str) -> str:
    """Return the lines of a collection error that say what is wrong: pytest marks them with E."""
    marked = [line[1:].strip() for line in message.splitlines() if line.startswith("E ")]
    return " ".join(marked)[-400:] if marked else message[-400:]
