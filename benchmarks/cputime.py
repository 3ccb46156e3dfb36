"""Processor time of a step, independent of other processes."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from uncaged_engine.journal import lines

_PROCESS_CLOCK = 2  # of Linux's clock ids that are made of a process id


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The length of a journal and the processor time of its processes at one moment."""

    journal_bytes: int
    cpu_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Samples of one run of a thread, in order.

    ends: the end of each step's line in the journal, step 1 first.
    """

    samples: Sequence[Sample]
    ends: Sequence[int]

    def per_step_us(self, after: int, until: int) -> float:
        """Return the mean microseconds of processor time per step, from step *after* to step
        *until*.
        """
        return (self._at(until) - self._at(after)) / 1000 / (until - after)

    def _at(self, step: int) -> float:
        """Return the nanoseconds used when *step* was written, interpolated between samples."""
        position = self.ends[step - 1]
        sizes = [sample.journal_bytes for sample in self.samples]
        index = min(max(1, bisect_left(sizes, position)), len(sizes) - 1)
        before, behind = self.samples[index - 1], self.samples[index]
        share = (position - before.journal_bytes) / max(
            1, behind.journal_bytes - before.journal_bytes
        )
        return before.cpu_ns + share * (behind.cpu_ns - before.cpu_ns)


def take_sample(journal: Path, pids: Sequence[int]) -> Sample:
    return Sample(journal_bytes=journal.stat().st_size, cpu_ns=sum(map(used_ns, pids)))


def used_ns(pid: int) -> int:
    """Return the processor time of a process, its ended threads included."""
    return time.clock_gettime_ns(~pid << 3 | _PROCESS_CLOCK)


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def ends_of_steps(journal: Path) -> list[int]:
    """Return the end of the line of each finished step."""
    ends = []
    position = 0
    with journal.open("rb") as file:
        for line in file:
            position += len(line)
            if lines.shape_of(line)[0] == "step":
                ends.append(position)
    return ends
