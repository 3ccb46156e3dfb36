"""Search over patch candidates: tries them in order on all hosts until one passes everything, then
some more, and compares those that pass.

Rule 1: the failing test runs first, then the tests that run the changed line, then the whole suite
in a fresh process.
Rule 2: which candidate wins, and where the budget ends, depends on the order alone, not on which
host was quicker: a result counts when those of all earlier candidates are known.
Rule 3: an edit that deletes or weakens wins only if no other passed; one that hides the failure
never does.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from ..harness.baseline import RequestRunner
from ..localise.queue import PatchCandidate
from ..server.forks import CLOCK_FACTOR
from .differential import choose
from .validator import Goal, PatchValidator, PlausiblePatch, Validation

LEAST_CPU_S = 0.2
PATIENCE = 10.0
MAX_PARTLY = 40
PARTLY_CPU_S = 20.0
MAX_PASSING = 8
"""Passing candidates that are compared; the search ends with the last of them."""
MAX_HIDING = 24
LEAST_EXTRA_S = 5.0
EXTRA_SHARE = 0.5
"""Share of the processor time up to the first passing candidate that the search for others may
use; twice that if the first is severe.
"""
ReportProgress = Callable[[int, str], None]


class Queue(Protocol):
    """Candidates by number, best first; IndexError behind the last."""

    def __getitem__(self, number: int, /) -> PatchCandidate: ...


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits of a search: processor time, number of candidates, and, against tests that only wait,
    a time *until* by the clock.

    cpu_clock: the processor time of this process. extra_cpu_s: what extensions have used, which
    does not count against the limit.
    """

    cpu_s: float
    candidates: int
    until: float
    clock: Callable[[], float] = time.monotonic
    cpu_clock: Callable[[], float] = time.process_time
    used_cpu_s: float = 0.0
    extra_cpu_s: float = 0.0
    tried: int = 0

    @property
    def exhausted(self) -> str | None:
        """Return the limit that is reached, in words; None if there is none."""
        if self.used_cpu_s >= self.cpu_s:
            return f"{self.cpu_s:.0f} s of processor time"
        if self.tried >= self.candidates:
            return f"{self.candidates} candidates"
        return "the time for this answer (by the clock)" if self.clock() >= self.until else None

    def part(self, share: float) -> Budget:
        """Return a new budget with a *share* of what is left."""
        cpu_s, candidates = (
            (self.cpu_s - self.used_cpu_s) * share,
            int((self.candidates - self.tried) * share),
        )
        return replace(
            self, cpu_s=cpu_s, candidates=candidates, used_cpu_s=0.0, extra_cpu_s=0.0, tried=0
        )

    def extended(self, cpu_s: float) -> Budget:
        """Return a small new budget for work after this one has ended."""
        return replace(
            self.part(1.0), cpu_s=cpu_s, candidates=self.candidates, until=self.until + cpu_s
        )

    @contextmanager
    def charge(self) -> Iterator[None]:
        """Charge the processor time of the block."""
        started = self.cpu_clock()
        try:
            yield
        finally:
            self.used_cpu_s += self.cpu_clock() - started

    def add(self, part: Budget) -> None:
        """Add what *part* has used."""
        self.used_cpu_s += part.used_cpu_s
        self.extra_cpu_s += part.extra_cpu_s
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
    queue: Queue,
    goal: Goal,
    budget: Budget,
    progress: ReportProgress,
    *,
    alone_s: float = 0.0,
) -> RepairResult:
    """Return the best candidate that repairs *goal*; if there is none, one that repairs a part of
    it; else no patch. alone_s: for so much processor time the first host works alone, as it costs
    time to start another.
    """
    validator = PatchValidator(goal, least_cpu_s=LEAST_CPU_S)
    first = SearchPass(hosts, queue, validator, budget, alone_s=alone_s)
    first.run(progress)
    passes = [first]
    if not first.acceptable and first.slow and budget.exhausted is None:
        again = [queue[number] for number in first.slow]  # perhaps correct, but slow
        patient = PatchValidator(goal, least_cpu_s=LEAST_CPU_S * PATIENCE)
        passes.append(SearchPass(hosts, again, patient, budget))
        passes[-1].run(progress)
    if not any(done.acceptable for done in passes) and first.part:
        # the tests may fail for more than one reason
        some = [queue[number] for number in first.part[:MAX_PARTLY]]
        partly = PatchValidator(goal, least_cpu_s=LEAST_CPU_S, partly=True)
        extension = budget.extended(PARTLY_CPU_S)
        passes.append(SearchPass(hosts, some, partly, extension))
        passes[-1].run(progress)
        budget.extra_cpu_s += extension.used_cpu_s
    for done in passes:
        if done.acceptable:
            patch, cpu_s = choose(hosts[0], done.validator, done.acceptable)
            budget.used_cpu_s += cpu_s
            return RepairResult(patch=patch)
    hiding = [patch for done in passes for patch in done.plausible]
    return RepairResult(patch=None, notes=_refusals(hiding))


def _refusals(hiding: Sequence[PlausiblePatch]) -> tuple[str, ...]:
    """Return a note that names the first edit that passed but is no repair."""
    if not hiding:
        return ()
    first = min(hiding, key=lambda patch: patch.key)
    edit = first.candidate.edit.describe(first.candidate.source)
    more = f" ({len(hiding) - 1} more like it)" if len(hiding) > 1 else ""
    return (
        f"an edit passes the tests, but only hides the failure, and was not made: it {first.judgement.hides}: {edit}{more}",
    )


class SearchPass:
    """Pass over a queue in which each candidate is tried once, on all hosts. One lock guards the
    shared state.
    """

    def __init__(
        self,
        hosts: Sequence[RequestRunner],
        queue: Queue,
        validator: PatchValidator,
        budget: Budget,
        *,
        alone_s: float = 0.0,
    ) -> None:
        self._alone_s, self._help = alone_s, threading.Event()
        self._hosts, self._queue, self.validator, self._budget = hosts, queue, validator, budget
        self._next = 0
        self._counted = 0
        self._cutoff = sys.maxsize
        self._last_cpu_s = float("inf")
        self._end_cpu_s = 0.0
        self._lock = threading.Lock()
        self._waiting: dict[int, Validation] = {}
        self._texts: set[bytes] = set()
        self.plausible: list[PlausiblePatch] = []
        self.slow: list[int] = []
        self.part: list[int] = []

    @property
    def acceptable(self) -> list[PlausiblePatch]:
        """Return the patches that hide nothing."""
        return [patch for patch in self.plausible if not patch.judgement.hides]

    def run(self, progress: ReportProgress) -> None:
        if self._budget.exhausted is not None:
            return
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            try:
                numbers = range(len(self._hosts))
                for done in [pool.submit(self._join, number, progress) for number in numbers]:
                    done.result()
            except BaseException:  # cancelled: start no further candidate
                self._cutoff = 0
                raise
        self._budget.used_cpu_s += self._end_cpu_s

    def _join(self, number: int, progress: ReportProgress) -> None:
        """Work with the host *number*. All but the first wait until that has worked for long."""
        try:
            if number:
                self._help.wait(CLOCK_FACTOR * self._alone_s)
            self._work(self._hosts[number], progress)
        except BaseException:  # the others start no further candidate
            self._cutoff = 0
            raise
        finally:
            self._help.set()

    def _work(self, host: RequestRunner, progress: ReportProgress) -> None:
        while True:
            with self._lock:
                number = self._next
                if number >= self._cutoff or self._spent():
                    return
                self._next += 1
                started = time.thread_time()
                candidate = self._take(number)
                if candidate is None:
                    self._end_cpu_s += time.thread_time() - started
                    return
                if self._is_known(candidate):
                    own_s = time.thread_time() - started
                    self._finish(number, Validation(cpu_s=own_s, ran=False), progress)
                    continue
            validation = self.validator.validate(host, number, candidate)
            # the processor time of making and comparing the candidate counts, too
            own_s = time.thread_time() - started
            with self._lock:
                self._finish(number, replace(validation, cpu_s=validation.cpu_s + own_s), progress)

    def _spent(self) -> bool:
        """Return whether the results that are known use up the processor time: then no later one
        will count.
        """
        return self._spent_s() >= min(self._budget.cpu_s, self._last_cpu_s)

    def _spent_s(self) -> float:
        """Return the processor time of all results that are known."""
        ahead_s = sum(validation.cpu_s for validation in self._waiting.values())
        return self._budget.used_cpu_s + ahead_s

    def _is_known(self, candidate: PatchCandidate) -> bool:
        """Return whether an earlier candidate leads to the same text."""
        path, data = candidate.edit.path, candidate.edit.apply(candidate.source.data)
        size = len(self._texts)
        self._texts.add(hashlib.blake2b(path.encode() + b"\0" + data, digest_size=16).digest())
        return len(self._texts) == size

    def _finish(self, number: int, validation: Validation, progress: ReportProgress) -> None:
        """Store a result, and count all whose earlier ones are known."""
        self._waiting[number] = validation
        if self._spent_s() >= self._alone_s:
            self._help.set()
        while self._counted in self._waiting and self._counted < self._cutoff:
            self._count(self._counted, self._waiting.pop(self._counted), progress)
            self._counted += 1

    def _take(self, number: int) -> PatchCandidate | None:
        """Return the candidate with this *number*, None behind the last."""
        try:
            return self._queue[number]
        except IndexError:
            return None

    def _count(self, number: int, validation: Validation, progress: ReportProgress) -> None:
        """Count a result; those of all earlier candidates are counted."""
        budget = self._budget
        budget.used_cpu_s += validation.cpu_s
        budget.tried += validation.ran
        if validation.slow:
            self.slow.append(number)
        if validation.part:
            self.part.append(number)
        if validation.patch is not None:
            self._add(number, validation.patch)
        if budget.exhausted is not None or budget.used_cpu_s >= self._last_cpu_s:
            self._cutoff = min(self._cutoff, number + 1)
        if validation.ran:
            progress(budget.tried, self._queue[number].edit.path)

    def _add(self, number: int, patch: PlausiblePatch) -> None:
        """Add a patch, and limit the search for further ones."""
        self.plausible.append(patch)
        if len(self.acceptable) >= MAX_PASSING or len(self.plausible) >= MAX_HIDING:
            self._cutoff = number + 1
        if patch.judgement.hides:
            return
        used_s = self._budget.used_cpu_s
        extra_s = max(LEAST_EXTRA_S, EXTRA_SHARE * used_s) * (2 if patch.severity else 1)
        self._last_cpu_s = min(self._last_cpu_s, used_s + extra_s)
        self._cutoff = min(self._cutoff, number + 1 + lookahead(number, patch))


def lookahead(number: int, patch: PlausiblePatch) -> int:
    """Return how many further candidates are tried for a better one."""
    return max(400, 2 * number) if patch.severity else min(max(60, number // 2), 400)
