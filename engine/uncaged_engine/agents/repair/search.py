"""Candidates are tried in their order on all hosts until one passes everything; then a little longer, for one that changes less.

Rule 1: the failing test first, then the tests that run the changed line, then the whole suite in a fresh process.
Rule 2: which candidate wins depends on the order alone, not on which host was quicker.
Rule 3: whoever deletes or weakens is taken only when nothing else passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .baseline import Baseline, Runs
from .edits.edit import NATURES
from .guards import forgotten_names
from .host import Ask
from .ranking import Candidate
from .results import GREEN
from .spans import parses

LEAST_CPU_S = 0.2
PATIENCE = 10.0
MAX_RELATED = 60
RELATED_S = 4.0
MAX_UNSTEADY = 2
MAX_PARTLY = 40
PARTLY_CPU_S = 20.0
Tell = Callable[[int, str], None]


@dataclass(slots=True, kw_only=True)
class Budget:
    """What a search may use up: processor time, candidates, and real time as the clock stands at *until*."""

    cpu_s: float
    candidates: int
    until: float
    clock: Callable[[], float] = time.monotonic
    used_cpu_s: float = 0.0
    tried: int = 0

    @property
    def spent(self) -> str | None:
        """Say what is used up, or None."""
        if self.used_cpu_s >= self.cpu_s:
            return f"{self.cpu_s:.0f} s of processor time"
        if self.tried >= self.candidates:
            return f"{self.candidates} candidates"
        return "the time for this answer" if self.clock() >= self.until else None

    def part(self, share: float) -> Budget:
        """Return a budget of its own with a *share* of what is left."""
        cpu_s, candidates = (self.cpu_s - self.used_cpu_s) * share, int((self.candidates - self.tried) * share)
        return Budget(cpu_s=cpu_s, candidates=candidates, until=self.until, clock=self.clock)

    def beyond(self, cpu_s: float) -> Budget:
        """Return a small budget of its own for what may be done after this one."""
        return Budget(cpu_s=cpu_s, candidates=self.candidates, until=self.until + cpu_s, clock=self.clock)

    def pay(self, part: Budget) -> None:
        self.used_cpu_s += part.used_cpu_s
        self.tried += part.tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A candidate that breaks nothing. fixed: tests that failed and now pass. complete: among them all that were asked for.

    forgotten: how many variables are computed for nothing afterwards.
    """

    number: int
    candidate: Candidate
    fixed: tuple[str, ...]
    complete: bool
    forgotten: int

    @property
    def drastic(self) -> int:
        """0 for an edit that changes, more for one that weakens or leaves work undone, most for one that deletes."""
        return max(NATURES.index(self.candidate.edit.nature), 1 if self.forgotten else 0)

    @property
    def key(self) -> tuple[bool, int, int, bool, int]:
        """What is preferred comes first: complete, not drastic, small, not growing, early."""
        edit = self.candidate.edit
        return not self.complete, self.drastic, edit.size, edit.grows, self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """primary: the failing test that decides first. group: all that the edit is to repair.

    excluded: (path, whole file) that nobody wants.
    """

    primary: str
    group: tuple[str, ...]
    baseline: Baseline
    excluded: Collection[tuple[str, bytes]] = ()


def search(hosts: Sequence[Runs], queue: Sequence[Candidate], goal: Goal, budget: Budget, progress: Tell) -> Passing | None:
    """Return the best candidate that repairs *goal*; if there is none, one that repairs a part of it; or None."""
    first = Round(hosts, queue, Trial(goal, least_cpu_s=LEAST_CPU_S), budget)
    first.go(progress)
    if first.best is None and first.slow and budget.spent is None:
        again = [queue[number] for number in sorted(first.slow)]  # perhaps right, and only slow
        second = Round(hosts, again, Trial(goal, least_cpu_s=LEAST_CPU_S * PATIENCE), budget)
        second.go(progress)
        first.passing += second.passing
    if first.best is None and first.part:
        partly = [queue[number] for number in sorted(first.part)[:MAX_PARTLY]]  # the tests may fail for more than one reason
        third = Round(hosts, partly, Trial(goal, least_cpu_s=LEAST_CPU_S, partly=True), budget.beyond(PARTLY_CPU_S))
        third.go(progress)
        return third.best
    return first.best


class Round:
    """Every candidate of a queue once, on all hosts; what they share is under one lock."""

    def __init__(self, hosts: Sequence[Runs], queue: Sequence[Candidate], trial: Trial, budget: Budget) -> None:
        self._hosts, self._queue, self._trial, self._budget = hosts, queue, trial, budget
        self._next = 0
        self._cutoff = len(queue)
        self._lock = threading.Lock()
        self.passing: list[Passing] = []
        self.slow: list[int] = []
        self.part: list[int] = []

    @property
    def best(self) -> Passing | None:
        return min((one for one in self.passing if one.number < self._cutoff), key=lambda one: one.key, default=None)

    def go(self, progress: Tell) -> None:
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            try:
                for done in [pool.submit(self._work, host, progress) for host in self._hosts]:
                    done.result()
            except BaseException:  # asked to stop: nobody begins another candidate
                self._cutoff = 0
                raise

    def _work(self, host: Runs, progress: Tell) -> None:
        while True:
            with self._lock:
                number = self._next
                if number >= self._cutoff or self._budget.spent is not None:
                    return
                self._next += 1
            tried = self._trial.judge(host, number, self._queue[number])
            with self._lock:
                self._note(number, tried, progress)

    def _note(self, number: int, tried: Tried, progress: Tell) -> None:
        budget = self._budget
        budget.used_cpu_s += tried.cpu_s
        budget.tried += tried.ran
        if tried.slow:
            self.slow.append(number)
        if tried.part:
            self.part.append(number)
        if tried.passing is not None:
            self.passing.append(tried.passing)
            self._cutoff = min(self._cutoff, number + 1 + lookahead(number, tried.passing))
        if tried.ran:
            progress(budget.tried, self._queue[number].edit.path)


def lookahead(number: int, passing: Passing) -> int:
    """Return how many more candidates are tried for a better one."""
    return max(400, 2 * number) if passing.drastic else min(max(60, number // 2), 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """ran: whether it was run at all (text that is no Python is not). slow: it was cut off. part: it repairs the primary test, not all."""

    cpu_s: float
    ran: bool
    slow: bool = False
    part: bool = False
    passing: Passing | None = None


class Trial:
    """Judges one candidate after the other against one goal; *partly*: repairing the primary test is enough."""

    def __init__(self, goal: Goal, *, least_cpu_s: float, partly: bool = False) -> None:
        self.goal = goal
        baseline = goal.baseline
        self._partly = partly
        self._times_s = {name: baseline.times_s.get(name, 0.0) for name in baseline.green}
        known = baseline.failing[goal.primary]
        own_s = known.cpu_s if known.outcome != "timeout" else 0.0
        file = goal.primary.partition("::")[0]
        slowest = max((time_s for name, time_s in self._times_s.items() if name.partition("::")[0] == file), default=0.0)
        self._cpu_s = max(least_cpu_s, 5 * own_s, 4 * slowest)
        ending = {name for name, outcome in baseline.outcomes.items() if outcome not in ("timeout", "died")}
        self._all = [name for name in baseline.collected.tests if name in ending or (name in goal.group and not partly)]
        if goal.primary not in self._all:
            self._all.append(goal.primary)
        must = set(baseline.green) | (set() if partly else set(goal.group)) | {goal.primary}
        self._expected = [name for name in self._all if name not in must]
        self._suite_s = 60 + 4 * sum(self._times_s.values())

    def judge(self, host: Runs, number: int, candidate: Candidate) -> Tried:
        edit, goal = candidate.edit, self.goal
        if not parses(edit.apply(candidate.source.data)) or (edit.path, candidate.result) in goal.excluded:
            return Tried(cpu_s=0.0, ran=False)
        files = {edit.path: candidate.result}
        wall_s = 4 * self._cpu_s + 2
        first = host.run(
            Ask(tests=[goal.primary], cpu_s=self._cpu_s, wall_s=wall_s, total_s=wall_s * 2, quick=True, stop=True, files=files)
        )
        if first.outcomes.get(goal.primary) != GREEN:
            return Tried(cpu_s=first.cpu_s, ran=True, slow=any(result.outcome == "timeout" for result in first.results))
        others = [] if self._partly else [name for name in goal.group if name != goal.primary]
        related = [*others, *self._related(candidate)]
        wider = host.run(Ask(tests=related, cpu_s=max(self._cpu_s, 1.0), wall_s=max(wall_s, 10), total_s=60, stop=True, files=files))
        cpu_s = first.cpu_s + wider.cpu_s
        failed = [name for name in related if wider.outcomes.get(name) != GREEN]
        if failed:
            return Tried(cpu_s=cpu_s, ran=True, part=failed[0] in others)
        passing, cost = self._suite(host, number, candidate, files)
        return Tried(cpu_s=cpu_s + cost, ran=True, passing=passing)

    def _related(self, candidate: Candidate) -> list[str]:
        """Return passing tests that run the changed line, the quick ones first, as many as take a few seconds."""
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

    def _suite(self, host: Runs, number: int, candidate: Candidate, files: dict[str, bytes]) -> tuple[Passing | None, float]:
        """Run everything afresh; where tests are known to be unsteady, one that fails in the suite but not alone is let off."""
        baseline, goal = self.goal.baseline, self.goal
        expected, spent = list(self._expected), 0.0
        cpu_s = max(self._cpu_s * 2, 2.0, 4 * max(self._times_s.values(), default=0.0))
        for _ in range(1 + MAX_UNSTEADY):
            ask = Ask(
                tests=self._all,
                cpu_s=cpu_s,
                wall_s=4 * cpu_s + 20,
                total_s=self._suite_s,
                warm=False,
                suite=True,
                stop=True,
                tidy=True,
                expected=expected,
                files=files,
            )
            run = host.run(ask)
            spent += run.cpu_s
            outcomes = run.outcomes
            broken = [name for name in self._all if outcomes.get(name) != GREEN and name not in expected]
            if not broken:
                return self._passing(number, candidate, [name for name in baseline.red if outcomes.get(name) == GREEN]), spent
            failed = next((name for name in broken if name in outcomes), None)
            if failed is None or failed in goal.group or not baseline.unsteady:
                return None, spent
            alone = host.run(Ask(tests=[failed], cpu_s=cpu_s, wall_s=60.0, total_s=120.0, warm=False, files=files))
            spent += alone.cpu_s
            if alone.outcomes.get(failed) != GREEN:
                return None, spent
            expected.append(failed)
        return None, spent

    def _passing(self, number: int, candidate: Candidate, fixed: Sequence[str]) -> Passing:
        data = candidate.source.data
        return Passing(
            number=number,
            candidate=candidate,
            fixed=tuple(fixed),
            complete=set(self.goal.group) <= set(fixed),
            forgotten=forgotten_names(data, candidate.edit.apply(data)),
        )
