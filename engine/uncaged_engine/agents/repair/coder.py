"""The coder searches for edits until the tests of its phase pass, and touches the worktree only with one that passed everything."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...workspace.git import Git
from .answers import answer, counted, listed
from .baseline import Baseline
from .changes import base_of, changed_paths, put_back
from .laboratory import Laboratory
from .planner import tests_of
from .ranking import groups_of, queue_of, suspicion_of
from .search import Budget, Goal, Passing, search
from .spans import Source
from .task import Progress, Task

SPARE_S = 45.0
FIRST_SHARE = 0.6
MAX_EDITS = 12


@dataclass(slots=True, kw_only=True)
class Work:
    """What this answer has done so far. left: failing tests after the last edit; None before the first measurement."""

    budget: Budget
    edits: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: tuple[str, ...] | None = None
    tests: int = 0

    @property
    def effort(self) -> str:
        return f"{counted(self.budget.tried, 'candidate')} in {self.budget.used_cpu_s:.1f} s of processor time"


def code(task: Task, progress: Progress) -> str:
    """Return the coder's answer."""
    limits = task.limits
    until = time.monotonic() + max(10.0, task.wall_s - SPARE_S)
    work = Work(budget=Budget(cpu_s=limits.budget_s, candidates=limits.max_candidates, until=until))
    excluded = _take_back(task, work, progress)
    phase, open_phases = _phases(task)
    solved = False
    for _ in range(MAX_EDITS):
        goes_on = _one_edit(task, phase, excluded, work, progress)
        solved = work.left is not None and not (tests_of(phase, work.left) if _ours(phase) else work.left)
        if solved or not goes_on:
            break
    return _answer(task, work, phase, open_phases, solved)


def _one_edit(task: Task, phase: object, excluded: Sequence[tuple[str, bytes]], work: Work, progress: Progress) -> bool:
    """Measure, search, and apply the best edit; False when there is nothing to do or nothing was found."""
    with Laboratory(task, progress) as laboratory:
        baseline = laboratory.measure(laboratory.collect())
        work.left, work.tests = tuple(baseline.failing), len(baseline.outcomes)
        groups = _ordered(groups_of(baseline, laboratory.source), phase)
        for number, group in enumerate(groups):
            share = FIRST_SHARE if number == 0 and len(groups) > 1 else 1.0
            found = _search(laboratory, baseline, group, excluded, work, share, progress)
            if found is not None:
                _apply(laboratory, found, work)
                work.left = tuple(name for name in baseline.failing if name not in found.fixed)
                return bool(work.left)
            if work.budget.spent is not None:
                break
    return False


def _search(
    laboratory: Laboratory,
    baseline: Baseline,
    group: Sequence[str],
    excluded: Sequence[tuple[str, bytes]],
    work: Work,
    share: float,
    progress: Progress,
) -> Passing | None:
    suspicion = suspicion_of(baseline, group, laboratory.source, laboratory.task.text)
    queue = queue_of(baseline, group, suspicion, laboratory.source)
    if not queue:
        work.notes.append(f"no line of the repository's own code was seen to run in {listed(group)}")
        return None
    whole = work.budget
    part = Budget(
        cpu_s=(whole.cpu_s - whole.used_cpu_s) * share,
        candidates=int((whole.candidates - whole.tried) * share),
        until=whole.until,
    )
    by_size = sorted(group, key=lambda name: (len(baseline.lines_of(name)), baseline.failing[name].cpu_s))
    found = None
    for primary in by_size[:3]:  # one of them may fail for two reasons
        progress(f"searching among {counted(len(queue), 'candidate')} for {primary}")
        goal = Goal(primary=primary, group=tuple(group), baseline=baseline, excluded=excluded)
        before = part.tried, part.used_cpu_s
        found = search(laboratory.crew(), queue, goal, part, _told(progress, whole.tried))
        if found is not None or part.spent is not None or len(by_size) == 1:
            break
        progress(f"{part.tried - before[0]} candidates, none lets {primary} pass")
    whole.tried += part.tried
    whole.used_cpu_s += part.used_cpu_s
    if found is None:
        ended = part.spent
        work.notes.append(
            f"{listed(group, 3)}: none of {counted(part.tried, 'candidate')} passed"
            + (f"; {ended} were used up" if ended is not None else f"; all {len(queue)} were tried")
        )
    return found


def _told(progress: Progress, before: int) -> Callable[[int, str], None]:
    def tell(tried: int, path: str) -> None:
        progress(f"{before + tried} candidates tried, now {path}", candidates=before + tried, file=path)

    return tell


def _apply(laboratory: Laboratory, found: Passing, work: Work) -> None:
    """Write the edit into the worktree: one rename, so that a crash leaves the old file or the new one."""
    candidate = found.candidate
    source: Source = candidate.source
    path = laboratory.setting.top / source.path
    half = path.with_name(f".{path.name}.uncaged-half")
    half.write_bytes(candidate.result)
    half.chmod(path.stat().st_mode & 0o7777)
    os.replace(half, path)
    text = candidate.edit.describe(source)
    weak = {"delete": " (it only deletes)", "weaken": " (it only weakens)"}.get(candidate.edit.nature, "")
    work.edits.append(f"{text}{weak}; repairs {listed(found.fixed, 3)}")
    if source.path not in work.files:
        work.files.append(source.path)


def _take_back(task: Task, work: Work, progress: Progress) -> list[tuple[str, bytes]]:
    """After a reviewer's no to a green change: put the files back, and never propose the same again."""
    last = task.steps[-1] if task.steps else {}
    meta = last.get("meta")
    if last.get("role") != "reviewer" or not isinstance(meta, Mapping) or meta.get("status") != "rejected":
        return []
    with Laboratory(task, progress) as laboratory:
        top = laboratory.setting.top
        git = Git(directory=top, environment=task.environment)
        base = base_of(task, git)
        paths = [path for path in changed_paths(git, base) if path.endswith(".py")]
        baseline = laboratory.measure(laboratory.collect())
    if baseline.red or not paths:
        return []
    excluded = [(path, (top / path).read_bytes()) for path in paths if (top / path).is_file()]
    put_back(git, base, paths)
    issues = meta.get("issues")
    work.notes.append(
        f"the reviewer rejected the change to {listed(paths)}; it was taken back ({listed([str(one) for one in issues], 2) if isinstance(issues, list) else ''})"
    )
    return excluded


def _phases(task: Task) -> tuple[object, list[str]]:
    """Return the phase to do now (None: whatever fails) and the names of those not completed yet."""
    phases = task.last_meta("planner").get("phases")
    completed = {
        name
        for step in task.steps
        if step.get("role") == "coder"
        and isinstance(meta := step.get("meta"), Mapping)
        and isinstance(done := meta.get("completedPhases"), list)
        for name in done
    }
    if not isinstance(phases, list):
        return None, []
    left = [phase for phase in phases if isinstance(phase, dict) and phase.get("name") not in completed]
    return (left[0] if left else None), [str(phase.get("name")) for phase in left]


def _ours(phase: object) -> bool:
    return isinstance(phase, dict) and str(phase.get("acceptance", "")).startswith("These tests pass, and no other test breaks: ")


def _ordered(groups: Sequence[tuple[str, ...]], phase: object) -> list[tuple[str, ...]]:
    """Put the groups of the phase first."""
    return sorted(groups, key=lambda group: not tests_of(phase, group))


def _answer(task: Task, work: Work, phase: object, open_phases: Sequence[str], solved: bool) -> str:
    left = work.left or ()
    lines = [*work.notes, *(f"Edited {edit}" for edit in work.edits)]
    if solved:
        phases = task.last_meta("planner").get("phases")
        planned = [one for one in phases if isinstance(one, dict)] if isinstance(phases, list) else []
        done = [
            str(one.get("name"))
            for one in planned
            if one.get("name") in open_phases and (not left or (_ours(one) and not tests_of(one, left)))
        ]
        summary = f"{'; '.join(work.edits) or 'nothing had to be changed'}. {counted(work.tests, 'test')}, {len(left)} still failing. Tried {work.effort}."
        status = "phase-done" if left and done else "all-done" if not left else "stuck"
        if status != "stuck":
            return answer([*lines, summary], {"status": status, "completedPhases": done, "filesChanged": work.files, "summary": summary})
    name = phase.get("name") if isinstance(phase, dict) else "the task"
    kept = f" Kept, because it repairs a part: {'; '.join(work.edits)}." if work.edits else ""
    summary = f"no small edit was found for {name}: tried {work.effort}. {'; '.join(work.notes)}.{kept} Still failing: {listed(left) or 'unknown'}."
    return answer([*lines, summary], {"status": "stuck", "completedPhases": [], "filesChanged": work.files, "summary": summary})
