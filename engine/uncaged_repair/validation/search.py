"""Search over patch candidates: tries them in order on all hosts until one passes everything, then
some more for a smaller one.

Rule 1: the failing test runs first, then the tests that run the changed line, then the whole suite
in a fresh process.
Rule 2: which candidate wins depends on the order alone, not on which host was quicker.
Rule 3: an edit that deletes or weakens wins only if no other passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..harness.baseline import RequestRunner
from ..localise.ranking import PatchCandidate
from .validator import Goal, PatchValidator, PlausiblePatch, Validation

LEAST_CPU_S = 0.2
PATIENCE = 10.0
MAX_PARTLY = 40
PARTLY_CPU_S = 20.0
ReportProgress = Callable[[int, str], None]


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits of a search: processor time, number of candidates, and a time *until* by the clock."""

    cpu_s: float
    candidates: int
    until: float
    clock: Callable[[], float] = time.monotonic
    used_cpu_s: float = 0.0
    tried: int = 0

    @property
    def exhausted(self) -> str | None:
        """Return the limit that is reached, in words; None if there is none."""
        if self.used_cpu_s >= self.cpu_s:
            return f"{self.cpu_s:.0f} s of processor time"
        if self.tried >= self.candidates:
            return f"{self.candidates} candidates"
        return "the time for this answer" if self.clock() >= self.until else None

    def part(self, share: float) -> Budget:
        """Return a new budget with a *share* of what is left."""
        cpu_s, candidates = (
            (self.cpu_s - self.used_cpu_s) * share,
            int((self.candidates - self.tried) * share),
        )
        return Budget(cpu_s=cpu_s, candidates=candidates, until=self.until, clock=self.clock)

    def extended(self, cpu_s: float) -> Budget:
        """Return a small new budget for work after this one has ended."""
        return Budget(
            cpu_s=cpu_s, candidates=self.candidates, until=self.until + cpu_s, clock=self.clock
        )

    def add(self, part: Budget) -> None:
        """Add what *part* has used."""
        self.used_cpu_s += part.used_cpu_s
        self.tried += part.tried


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """Result of a search. patch: the best one; None if none may be applied. notes: sentences for
    the report, for instance about an edit that passes but is no repair.
    """

    patch: PlausiblePatch | None
    notes: tuple[str, ...] = ()


def search(
    hosts: Sequence[RequestRunner],
    queue: Sequence[PatchCandidate],
    goal: Goal,
    budget: Budget,
    progress: ReportProgress,
) -> RepairResult:
    """Return the best candidate that repairs *goal*; if there is none, one that repairs a part of
    it; else None.
    """
    first = SearchPass(hosts, queue, PatchValidator(goal, least_cpu_s=LEAST_CPU_S), budget)
    first.run(progress)
    if first.best is None and first.slow and budget.exhausted is None:
        again = [queue[number] for number in sorted(first.slow)]  # perhaps correct, but slow
        second = SearchPass(
            hosts, again, PatchValidator(goal, least_cpu_s=LEAST_CPU_S * PATIENCE), budget
        )
        second.run(progress)
        first.plausible += second.plausible
    if first.best is None and first.part:
        # the tests may fail for more than one reason
        partly = [queue[number] for number in sorted(first.part)[:MAX_PARTLY]]
        third = SearchPass(
            hosts,
            partly,
            PatchValidator(goal, least_cpu_s=LEAST_CPU_S, partly=True),
            budget.extended(PARTLY_CPU_S),
        )
        third.run(progress)
        return RepairResult(patch=third.best)
    return RepairResult(patch=first.best)


class SearchPass:
    """Pass over a queue in which each candidate is tried once, on all hosts. One lock guards the
    shared state.
    """

    def __init__(
        self,
        hosts: Sequence[RequestRunner],
        queue: Sequence[PatchCandidate],
        validator: PatchValidator,
        budget: Budget,
    ) -> None:
        self._hosts, self._queue, self._validator, self._budget = hosts, queue, validator, budget
        self._next = 0
        self._cutoff = len(queue)
        self._lock = threading.Lock()
        self.plausible: list[PlausiblePatch] = []
        self.slow: list[int] = []
        self.part: list[int] = []

    @property
    def best(self) -> PlausiblePatch | None:
        return min(
            (patch for patch in self.plausible if patch.number < self._cutoff),
            key=lambda patch: patch.key,
            default=None,
        )

    def run(self, progress: ReportProgress) -> None:
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            try:
                for done in [pool.submit(self._work, host, progress) for host in self._hosts]:
                    done.result()
            except BaseException:  # cancelled: start no further candidate
                self._cutoff = 0
                raise

    def _work(self, host: RequestRunner, progress: ReportProgress) -> None:
        while True:
            with self._lock:
                number = self._next
                if number >= self._cutoff or self._budget.exhausted is not None:
                    return
                self._next += 1
            validation = self._validator.validate(host, number, self._queue[number])
            with self._lock:
                self._note(number, validation, progress)

    def _note(self, number: int, validation: Validation, progress: ReportProgress) -> None:
        budget = self._budget
        budget.used_cpu_s += validation.cpu_s
        budget.tried += validation.ran
        if validation.slow:
            self.slow.append(number)
        if validation.part:
            self.part.append(number)
        if validation.patch is not None:
            self.plausible.append(validation.patch)
            self._cutoff = min(self._cutoff, number + 1 + lookahead(number, validation.patch))
        if validation.ran:
            progress(budget.tried, self._queue[number].edit.path)


def lookahead(number: int, patch: PlausiblePatch) -> int:
    """Return how many further candidates are tried for a better one."""
    return max(400, 2 * number) if patch.severity else min(max(60, number // 2), 400)
