"""Planner role: runs the tests and plans one phase for each group of failing ones. Without a
failing test it says what else could work.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from uncaged_engine.services.git import Git

from ..harness.baseline import Baseline
from ..harness.harness import Harness
from ..harness.results import RED, Collected
from ..localise.ranking import groups_of, suspicion_of
from ..task import PersonNeeded, Progress, Task
from .answers import answer, list_names, plural
from .group_facts import facts_of
from .named_tests import split_ids
from .phases import acceptance_of
from .relation import Relation, is_general, relate
from .scope import part_run

MAX_PHASES = 6
SHOWN_PLACES = 6
SHOWN_TESTS = 3
FROM_A_TEST = "The built-in repair works from a failing test alone."
NEXT_STEP = (
    'To repair them all the same, run again with --prompt "make the tests pass"; if one of them does belong to the prompt, name that '
    "test in it. To work from the description, run it with another agent, as in --agent claude (`uncaged-workflow agents` lists those "
    "that are here), or commit a test that fails because of the problem first"
)
QUESTION = "Repair them all the same? Answer yes or no."
CHOICES = ("yes", "no")
CUT_SUITE = (
    "A repair is checked with the tests that were run, and with no others; to run more, give "
    "--agent-option suiteSeconds=600, or --test-command for the tests that matter."
)
OTHER_AGENT = (
    "To work from a description, run it with another agent, as in --agent claude (`uncaged-workflow agents` lists those that are here); "
    "or add a test that fails because of the problem, commit it, and run again"
)
NO_PYTHON = (
    "The built-in repair changes Python code alone; run it with another agent, as in --agent claude "
    "(`uncaged-workflow agents` lists those that are here)"
)


def plan(task: Task, progress: Progress) -> str:
    """Return the planner's answer.

    Raises:
        PersonNeeded: no failing test belongs to the issue's text, and a person can be asked.
    """
    if task.test_command is None and not _has_python(task):
        return _aborted(
            f"there is no Python file in {task.worktree.name}, and the built-in repair repairs Python alone. {OTHER_AGENT}"
        )
    with Harness(task, progress, fill_bytecode=True) as harness:
        collected = harness.collect()
        where = f"{harness.project.label}, {harness.runner}"
        if collected.errors or not collected.tests:
            if not collected.errors and not harness.project.has_python:
                return _aborted(f"there is no Python file in {harness.project.top}. {NO_PYTHON}")
            return _aborted(_why_not_collected(collected, where))
        baseline = harness.measure(collected)
        if not baseline.failing:
            return _aborted(_why_nothing_to_do(baseline, where))
        progress("comparing the failing tests with the prompt")
        groups = groups_of(baseline, harness.source)
        relations = _relations(harness, baseline, groups)
        if all(relation.kind == "none" for relation in relations):
            if task.reply is None and task.attended:
                raise PersonNeeded(f"{_unrelated(baseline)}. {QUESTION}", CHOICES)
            if task.reply != CHOICES[0]:
                return _aborted(f"{_unrelated(baseline)}. {NEXT_STEP}")
            relations = [Relation(kind="confirmed") for _ in groups]
        harness.keep_bytecode()
        return _planned(harness, baseline, where, list(zip(groups, relations, strict=True)))


def _relations(
    harness: Harness, baseline: Baseline, groups: Sequence[Sequence[str]]
) -> list[Relation]:
    """Return how the issue's text is related to each group of failing tests."""
    command, text = harness.project.command, harness.task.text
    if is_general(text):
        return [Relation(kind="general") for _ in groups]
    if command.runner == "command":
        return [Relation(kind="command") for _ in groups]
    facts, suite = facts_of(harness, baseline, groups)
    if split_ids(text, [name for group in groups for name in group]).ids:
        return relate(text, facts, suite)
    chosen = [word for word in command.arguments if "::" in word or word.endswith(".py")]
    return relate(" ".join((text, *chosen)), facts, suite)


def _planned(
    harness: Harness,
    baseline: Baseline,
    where: str,
    found: Sequence[tuple[tuple[str, ...], Relation]],
) -> str:
    """Return the answer with a phase for each related group."""
    wanted = [
        (relation.tests or group, relation) for group, relation in found if relation.kind != "none"
    ]
    planned = {name for group, _ in wanted for name in group}
    left = [name for group, _ in found for name in group if name not in planned]
    merged = wanted[MAX_PHASES - 1 :] if len(wanted) > MAX_PHASES else []
    if merged:
        rest = tuple(name for group, _ in merged for name in group)
        wanted = [*wanted[: MAX_PHASES - 1], (rest, merged[0][1])]
    lines = _suite_lines(baseline, where)
    phases: list[dict[str, object]] = []
    for number, (group, relation) in enumerate(wanted, 1):
        phase, text = _phase(harness, baseline, f"repair-{number}", group)
        phases.append({**phase, "relation": {"kind": relation.kind, "text": relation.text}})
        lines += ["", text[0], f"  the prompt {relation.text}", *text[1:]]
    if left:
        shown = ", ".join(_with_error(baseline, name) for name in left[:SHOWN_TESTS])
        more = f" and {len(left) - SHOWN_TESTS} more" if len(left) > SHOWN_TESTS else ""
        lines += ["", f"Left alone, because the prompt does not ask for them: {shown}{more}."]
    meta: dict[str, object] = {"status": "planned", "phases": phases}
    if left:
        meta["leftAlone"] = left
    if not baseline.complete:
        meta["testsRun"] = len(baseline.outcomes)
        meta["testsCollected"] = len(baseline.collected.tests)
    return answer(lines, meta)


def _suite_lines(baseline: Baseline, where: str) -> list[str]:
    """Return the lines about the run of the suite. One that takes too long comes first, as it
    limits all that follows.
    """
    ran, collected = len(baseline.outcomes), len(baseline.collected.tests)
    return [
        f"Ran {where}: {len(baseline.red)} of {plural(ran, 'test')} fail{part_run(ran, collected)}.",
        *(
            [f"The suite takes longer than suiteSeconds. {CUT_SUITE}"]
            if not baseline.complete
            else []
        ),
        *(
            [f"Not planned for, they pass when run alone: {list_names(baseline.unsteady)}."]
            if baseline.unsteady
            else []
        ),
    ]


def _phase(
    harness: Harness, baseline: Baseline, name: str, group: tuple[str, ...]
) -> tuple[dict[str, str], list[str]]:
    """Return the phase for a group, and its lines in the answer."""
    suspicion = suspicion_of(baseline, group, harness.source, harness.task.text, harness.sources)
    places = sorted(suspicion.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_PLACES]
    suspects = ", ".join(f"{path}:{line} ({degree:.2f})" for (path, line), degree in places)
    error = baseline.failing[group[0]].error
    error_text = (
        f" The first fails with {error[0]}: {' '.join(error[1].split())[:160]}"
        if error is not None
        else ""
    )
    tests = plural(len(group), "failing test")
    description = f"Find a small edit that makes {tests} pass. Most suspicious lines: {suspects or 'none known'}.{error_text}"
    return (
        {"name": name, "description": description, "acceptance": acceptance_of(group)},
        [
            f"{name}: {list_names(group)}",
            f"  suspicious: {suspects or 'no line of the repository was seen'}",
            *([f" {error_text}"] if error_text else []),
        ],
    )


def _unrelated(baseline: Baseline) -> str:
    """Return the sentence that names failing tests of which none belongs to the prompt."""
    names = list(baseline.failing)
    shown = ", ".join(_with_error(baseline, name) for name in names[:SHOWN_TESTS])
    more = f" and {len(names) - SHOWN_TESTS} more" if len(names) > SHOWN_TESTS else ""
    seems = "does not seem" if len(names) == 1 else "none seems"
    return f"{plural(len(names), 'failing test')} found, and {seems} to belong to the prompt: {shown}{more}"


def _with_error(baseline: Baseline, name: str) -> str:
    result = baseline.failing.get(name)
    if result is None or result.error is None:
        return name
    message = " ".join(result.error[1].split())[:80]
    return f"{name} ({result.error[0]}{f': {message}' if message else ''})"


def _has_python(task: Task) -> bool:
    """Return whether the repository has a Python file, tracked or new."""
    git = Git(directory=task.worktree, environment=task.environment)
    top = Git(
        directory=Path(git.line("rev-parse", "--show-toplevel")), environment=task.environment
    )
    known = ("ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*.py")
    return bool(top.run(*known))


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
        return f"no tests found ({where}): the repository has Python files, and none of them holds a test. {FROM_A_TEST} {OTHER_AGENT}"
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
        next_step = (
            "run again with --agent-option suiteSeconds=600, or give --test-command for a part"
        )
        return f"{total} of {len(baseline.collected.tests)} tests ran before suiteSeconds were over, and none fails ({where}); {next_step}"
    failed = [name for name, outcome in baseline.outcomes.items() if outcome in RED]
    if failed:
        return f"{list_names(failed)} failed once and could not be run again ({where})"
    return f"all {plural(total, 'test')} pass ({where}). {FROM_A_TEST} {OTHER_AGENT}"


def _error_lines(message: str) -> str:
    """Return the lines of a collection error that say what is wrong: pytest marks them with E."""
    marked = [line[1:].strip() for line in message.splitlines() if line.startswith("E ")]
    return " ".join(marked)[-400:] if marked else message[-400:]
