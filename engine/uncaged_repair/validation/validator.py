"""Patch validation by running tests: the failing one, those that run the changed line, then the
whole suite in a fresh process.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..edits.edit import NATURES
from ..edits.spans import parses_with
from ..harness.baseline import Baseline, RequestRunner
from ..harness.host import RunRequest
from ..harness.results import GREEN
from ..localise.queue import PatchCandidate
from .alternatives import NO_ALTERNATIVES, Alternatives
from .change_checks import newly_unused_names
from .plausibility import PLAUSIBLE, Plausibility, plausibility

MAX_RELATED = 60
RELATED_S = 4.0
MAX_UNSTEADY = 2
EXCHANGE_SIZE = 2
WALL_FACTOR = 8
LEAST_WALL_S = 6.0
"""Limits by the clock only end tests that wait; others reach their limit of processor time first,
on a busy machine too.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlausiblePatch:
    """Candidate that passes the whole suite. fixed: tests that failed and now pass. complete: these
    include all tests of the goal.

    newly_unused: number of variables that are computed but no longer used. judgement: why it may be
    no repair. alternatives: what else passes.
    """

    number: int
    candidate: PatchCandidate
    fixed: tuple[str, ...]
    complete: bool
    newly_unused: int
    judgement: Plausibility = PLAUSIBLE
    alternatives: Alternatives = NO_ALTERNATIVES

    @property
    def severity(self) -> int:
        """Return 0 for an edit that changes, 1 for one that weakens, leaves variables unused or is
        doubtful, 2 for one that deletes, 3 for one that hides the failure.
        """
        if self.judgement.hides:
            return 3
        doubtful = self.newly_unused or self.judgement.doubt
        return max(NATURES.index(self.candidate.edit.nature), 1 if doubtful else 0)

    @property
    def key(self) -> tuple[bool, int, int, bool, int]:
        """Return the sort key, best first: complete, mild, small, not growing, early. A word more
        is no smaller than a word exchanged.
        """
        edit = self.candidate.edit
        size = max(edit.size, EXCHANGE_SIZE) if edit.grows else edit.size
        return not self.complete, self.severity, size, edit.grows, self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Goal of a search. primary: the failing test that decides first. group: all tests that the
    patch has to repair.

    excluded: unwanted results as (path, whole file).
    """

    primary: str
    group: tuple[str, ...]
    baseline: Baseline
    excluded: Collection[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Result of validating one candidate. ran: it was run at all; text that does not parse is not.
    slow: it timed out. part: it repairs the primary test, but not all.
    """

    cpu_s: float
    ran: bool
    slow: bool = False
    part: bool = False
    patch: PlausiblePatch | None = None


class PatchValidator:
    """Validator of candidates against one goal. partly: repairing the primary test is enough."""

    def __init__(self, goal: Goal, *, least_cpu_s: float, partly: bool = False) -> None:
        self.goal = goal
        baseline = goal.baseline
        self._partly = partly
        self._times_s = {name: baseline.times_s.get(name, 0.0) for name in baseline.green}
        known = baseline.failing[goal.primary]
        own_s = known.cpu_s if known.outcome != "timeout" else 0.0
        file = goal.primary.partition("::")[0]
        slowest = max(
            (time_s for name, time_s in self._times_s.items() if name.partition("::")[0] == file),
            default=0.0,
        )
        self.cpu_s = max(least_cpu_s, 5 * own_s, 4 * slowest)
        ending = {
            name
            for name, outcome in baseline.outcomes.items()
            if outcome not in ("timeout", "died")
        }
        self._all = [
            name
            for name in baseline.collected.tests
            if name in ending or (name in goal.group and not partly)
        ]
        if goal.primary not in self._all:
            self._all.append(goal.primary)
        must = set(baseline.green) | (set() if partly else set(goal.group)) | {goal.primary}
        self._expected = [name for name in self._all if name not in must]
        self._suite_s = 120 + WALL_FACTOR * sum(self._times_s.values())

    def validate(self, host: RequestRunner, number: int, candidate: PatchCandidate) -> Validation:
        """Run the tests that decide about one candidate, until one fails."""
        edit, goal = candidate.edit, self.goal
        if (
            not parses_with(candidate.source, edit.start, edit.end, edit.after)
            or (edit.path, candidate.result) in goal.excluded
        ):
            return Validation(cpu_s=0.0, ran=False)
        files = {edit.path: candidate.result}
        wall_s = WALL_FACTOR * self.cpu_s + LEAST_WALL_S
        first = host.run(
            RunRequest(
                tests=[goal.primary],
                cpu_s=self.cpu_s,
                wall_s=wall_s,
                total_s=wall_s * 2,
                quick=True,
                stop=True,
                files=files,
            )
        )
        if first.outcomes.get(goal.primary) != GREEN:
            return Validation(
                cpu_s=first.cpu_s,
                ran=True,
                slow=any(result.outcome == "timeout" for result in first.results),
            )
        others = [] if self._partly else [name for name in goal.group if name != goal.primary]
        related = [*others, *self.related(candidate)]
        wider = host.run(
            RunRequest(
                tests=related,
                cpu_s=max(self.cpu_s, 1.0),
                wall_s=max(wall_s, 20),
                total_s=240,
                stop=True,
                files=files,
            )
        )
        cpu_s = first.cpu_s + wider.cpu_s
        failed = [name for name in related if wider.outcomes.get(name) != GREEN]
        if failed:
            return Validation(cpu_s=cpu_s, ran=True, part=failed[0] in others)
        patch, cost = self._suite(host, number, candidate, files)
        return Validation(cpu_s=cpu_s + cost, ran=True, patch=patch)

    def related(self, candidate: PatchCandidate) -> list[str]:
        """Return passing tests that run the changed line, the quick ones first, as many as take a
        few seconds.
        """
        line = (candidate.edit.path, candidate.edit.line)
        running = [name for name, lines in self.goal.baseline.passed.items() if line in lines]
        chosen: list[str] = []
        total_s = 0.0
        for name in sorted(running, key=lambda name: self._times_s.get(name, 0.0))[:MAX_RELATED]:
            total_s += self._times_s.get(name, 0.0)
            if total_s > RELATED_S:
                break
            chosen.append(name)
        return chosen

    def _suite(
        self, host: RequestRunner, number: int, candidate: PatchCandidate, files: dict[str, bytes]
    ) -> tuple[PlausiblePatch | None, float]:
        """Run the suite in a fresh process. Where tests are known to be unsteady, one that fails in
        the suite but passes alone is excused.
        """
        baseline, goal = self.goal.baseline, self.goal
        expected, spent = list(self._expected), 0.0
        cpu_s = max(self.cpu_s * 2, 2.0, 4 * max(self._times_s.values(), default=0.0))
        for _ in range(1 + MAX_UNSTEADY):
            request = RunRequest(
                tests=self._all,
                cpu_s=cpu_s,
                wall_s=WALL_FACTOR * cpu_s + 20,
                total_s=self._suite_s,
                warm=False,
                suite=True,
                stop=True,
                tidy=True,
                expected=expected,
                files=files,
            )
            run = host.run(request)
            spent += run.cpu_s
            outcomes = run.outcomes
            broken = [
                name for name in self._all if outcomes.get(name) != GREEN and name not in expected
            ]
            if not broken:
                return self._patch(
                    number,
                    candidate,
                    [name for name in baseline.red if outcomes.get(name) == GREEN],
                ), spent
            failed = next((name for name in broken if name in outcomes), None)
            if failed is None or failed in goal.group or not baseline.unsteady:
                return None, spent
            alone = host.run(
                RunRequest(
                    tests=[failed], cpu_s=cpu_s, wall_s=60.0, total_s=120.0, warm=False, files=files
                )
            )
            spent += alone.cpu_s
            if alone.outcomes.get(failed) != GREEN:
                return None, spent
            expected.append(failed)
        return None, spent

    def _patch(
        self, number: int, candidate: PatchCandidate, fixed: Sequence[str]
    ) -> PlausiblePatch:
        data = candidate.source.data
        return PlausiblePatch(
            number=number,
            candidate=candidate,
            fixed=tuple(fixed),
            complete=set(self.goal.group) <= set(fixed),
            newly_unused=newly_unused_names(data, candidate.edit.apply(data)),
            judgement=plausibility(
                candidate.source,
                candidate.edit,
                self.goal.baseline.failing[self.goal.primary].frames,
            ),
        )
