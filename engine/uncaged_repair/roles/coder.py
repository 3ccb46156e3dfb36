"""Coder role: searches for patches until the tests of its phase pass. Only a patch that passed the
whole suite is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.storage.files import new_file
from uncaged_engine.services.git import Git

from ..harness.baseline import Baseline
from ..harness.harness import Harness
from ..harness.library_bytecode import drop_bytecode
from ..localise.queue import queue_of
from ..localise.ranking import groups_of, suspicion_of
from ..task import Progress, Task
from ..validation.search import Budget, search
from ..validation.validator import Goal, PlausiblePatch
from .answers import answer, list_names, plural
from .changes import base_of, changed_paths, restore_files
from .phases import Phase, open_phases
from .scope import scope_of
from .summary import alternatives_of, doubts_of

SPARE_S = 45.0
"""Part of the answer's time that is kept for the runs before and after a search. The processor time
ends a search first, unless the answer's time is very short or the machine very busy."""
FIRST_SHARE = 0.6
"""Share of the budget for the first group of failing tests, if there are more."""
ALONE_S = 8.0
"""Processor time of a search on one host; a shorter one gains little by another."""
DONE = ("completedPhases", "filesChanged")
"""Keys that the answer has even if they are empty."""
NATURE_TEXTS = {
    "delete": " (it only deletes)",
    "hide": " (it may only keep the test from the failing line)",
    "weaken": " (it only weakens)",
}
MAX_EDITS = 12
MAX_PRIMARIES = 3


def code(task: Task, progress: Progress) -> str:
    """Return the coder's answer."""
    return Coder(task, progress).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEdit:
    """Edit in the worktree. before: the file's content before it. complete: it repaired all tests
    of its group. alternatives, doubts: sentences on other edits that pass, and for a reviewer.
    """

    path: Path
    name: str
    before: bytes
    text: str
    complete: bool
    repairs: tuple[str, ...]
    alternatives: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Return the lines on this edit in the answer."""
        return [
            f"Edited {self.text}",
            *(f"  {text}" for text in self.alternatives),
            *(f"  Review this: {text}." for text in self.doubts),
        ]


class Coder:
    """State of one answer: budget, open phases, applied edits and notes."""

    def __init__(self, task: Task, progress: Progress) -> None:
        self._task, self._progress = task, progress
        limits = task.limits
        until = time.monotonic() + max(10.0, task.wall_s - SPARE_S)
        self._budget = Budget(cpu_s=limits.budget_s, candidates=limits.max_candidates, until=until)
        self._open = open_phases(task)
        self._scope = scope_of(task)
        self._edits: list[AppliedEdit] = []
        self._notes: list[str] = []
        self._left: tuple[str, ...] = ()
        self._tests = 0
        self._excluded: list[tuple[str, bytes]] = []

    def answer(self) -> str:
        self._revert_rejected()
        for _ in range(MAX_EDITS):
            found = self._one_edit()
            if not self._phase_open():
                return self._done()
            if not found:
                break
        return self._stuck()

    def _phase_open(self) -> bool:
        return self._open[0].open_with(self._left) if self._open else bool(self._left)

    def _one_edit(self) -> bool:
        """Measure, search, and apply the best patch; return False if none was found."""
        with Harness(self._task, self._progress) as harness:
            baseline = harness.measure(harness.collect())
            self._tests = len(baseline.outcomes)
            self._left = self._targets(
                [name for name in baseline.red if name not in baseline.unsteady], baseline
            )
            groups = [
                targets
                for group in groups_of(baseline, harness.source)
                if (targets := self._targets(group, baseline))
            ]
            groups = _phase_first(groups, self._open[0] if self._open else None)
            for number, group in enumerate(groups if self._phase_open() else []):
                found = self._search(
                    harness,
                    baseline,
                    group,
                    share=FIRST_SHARE if number == 0 and len(groups) > 1 else 1.0,
                )
                if found is not None:
                    self._apply(harness.project.top, found)
                    self._left = tuple(name for name in self._left if name not in found.fixed)
                    return True
                if self._budget.exhausted is not None:
                    break
        return False

    def _targets(self, names: Sequence[str], baseline: Baseline) -> tuple[str, ...]:
        """Return those of the failing tests *names* that the plan is about."""
        return self._scope.targets(names, baseline.collected.tests)

    def _search(
        self, harness: Harness, baseline: Baseline, group: Sequence[str], *, share: float
    ) -> PlausiblePatch | None:
        part = self._budget.part(share)
        with part.charge():
            suspicion = suspicion_of(
                baseline, group, harness.source, self._task.text, harness.sources
            )
            queue = queue_of(baseline, group, suspicion, harness.source)
        if not queue:
            self._budget.add(part)
            self._notes.append(
                f"no line of the repository's own code was seen to run in {list_names(group)}"
            )
            return None
        found = None
        for primary in _primaries(baseline, group):
            self._progress(f"searching for an edit that repairs {primary}")
            goal = Goal(
                primary=primary, group=tuple(group), baseline=baseline, excluded=self._excluded
            )
            hosts = harness.all_hosts()
            alone_s = 0.0 if hosts[-1].started else ALONE_S
            result = search(hosts, queue, goal, part, self._report, alone_s=alone_s)
            found = result.patch
            self._notes += result.notes
            if found is not None or part.exhausted is not None:
                break
        self._budget.add(part)
        if found is None:
            end = (
                f"the search ended at its limit of {part.exhausted}"
                if part.exhausted is not None
                else "all were tried"
            )
            self._notes.append(
                f"{list_names(group, 3)}: none of {plural(part.tried, 'candidate')} passed; {end}"
            )
        return found

    def _report(self, tried: int, path: str) -> None:
        total = self._budget.tried + tried
        self._progress(
            f"{plural(total, 'candidate')} tried, now {path}", candidates=total, file=path
        )

    def _apply(self, top: Path, found: PlausiblePatch) -> None:
        candidate = found.candidate
        path, name = top / candidate.source.path, candidate.source.path
        nature = NATURE_TEXTS.get(candidate.edit.nature, "")
        text = f"{candidate.edit.describe(candidate.source)}{nature}; repairs {list_names(found.fixed, 3)}"
        self._edits.append(
            AppliedEdit(
                path=path,
                name=name,
                before=path.read_bytes(),
                text=text,
                complete=found.complete,
                repairs=found.fixed,
                alternatives=tuple(alternatives_of(found)),
                doubts=tuple(doubts_of(found)),
            )
        )
        _write(path, candidate.result)

    def _revert_rejected(self) -> None:
        """Revert a change that passes all tests but that a reviewer rejected, and exclude it from
        the search.
        """
        if not self._task.steps or self._task.steps[-1].get("role") != "reviewer":
            return
        with Harness(self._task, self._progress) as harness:
            top = harness.project.top
            git = Git(directory=top, environment=self._task.environment)
            base = base_of(self._task, git)
            paths = [path for path in changed_paths(git, base) if path.endswith(".py")]
            baseline = harness.measure(harness.collect())
            if not paths or self._targets(baseline.red, baseline):
                return
        self._excluded = [
            (path, (top / path).read_bytes()) for path in paths if (top / path).is_file()
        ]
        restore_files(git, base, paths)
        self._notes.append(f"the change to {list_names(paths)} was rejected and is taken back")

    def _done(self) -> str:
        done = [phase.name for phase in self._open if not phase.open_with(self._left)]
        texts = [edit.text for edit in self._edits] or ["nothing had to be changed"]
        summary = f"{'; '.join(texts)}. {plural(self._tests, 'test')}, {len(self._left)} still failing. Tried {self._effort}."
        lines = [
            *self._notes,
            *(line for edit in self._edits for line in edit.lines),
            f"Tried {self._effort}.",
        ]
        meta: dict[str, object] = {
            "status": "phase-done" if self._left else "all-done",
            "completedPhases": done,
            "filesChanged": sorted({edit.name for edit in self._edits}),
            "summary": summary,
            "repaired": [name for edit in self._edits for name in edit.repairs],
            "alternatives": [text for edit in self._edits for text in edit.alternatives],
            "doubts": [text for edit in self._edits for text in edit.doubts],
        }
        return answer(lines, {key: value for key, value in meta.items() if value or key in DONE})

    def _stuck(self) -> str:
        """Return the answer of a search that found too little. A last edit that repaired only a
        part is reverted.
        """
        drop_bytecode(self._task.scratch)  # no test runs after this
        while self._edits and not self._edits[-1].complete:
            edit = self._edits.pop()
            _write(edit.path, edit.before)
            self._notes.append(f"taken back, because it repairs only a part: {edit.text}")
        name = self._open[0].name if self._open else "the failing tests"
        kept = f" Kept: {'; '.join(edit.text for edit in self._edits)}." if self._edits else ""
        failing = (
            f"Still failing: {list_names(self._left)}."
            if self._left
            else "No test could be seen to fail."
        )
        summary = f"no small edit was found for {name}: tried {self._effort}. {'; '.join(self._notes)}.{kept} {failing}"
        files = sorted({edit.name for edit in self._edits})
        return answer(
            [summary],
            {"status": "stuck", "completedPhases": [], "filesChanged": files, "summary": summary},
        )

    @property
    def _effort(self) -> str:
        return f"{plural(self._budget.tried, 'candidate')} in {self._budget.used_cpu_s + self._budget.extra_cpu_s:.1f} s of processor time"


def _phase_first(groups: Sequence[tuple[str, ...]], phase: Phase | None) -> list[tuple[str, ...]]:
    """Order the groups of the phase first."""
    return sorted(groups, key=lambda group: phase is not None and not phase.tests_among(group))


def _primaries(baseline: Baseline, group: Sequence[str]) -> list[str]:
    """Return the tests that may decide first: those that run the fewest lines. There are several
    because each may fail for two reasons.
    """
    return sorted(
        group, key=lambda name: (len(baseline.lines_of(name)), baseline.failing[name].cpu_s)
    )[:MAX_PRIMARIES]


def _write(path: Path, data: bytes) -> None:
    """Replace a file atomically; it keeps its mode."""
    mode = path.stat().st_mode & 0o7777
    with new_file(path, data) as new:
        os.fchmod(new.handle, mode)
        new.publish()
