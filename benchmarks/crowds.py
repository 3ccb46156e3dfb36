"""Cost of a step, and memory, with a thousand threads that live in one worker and all take
steps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId

from . import flows
from .bench import Bench, Figure
from .cputime import family, used_ns
from .laboratory import Laboratory, step_lines
from .table import Row, ratios
from .waiting import resident_bytes

FEW, MANY = 20, 1000
STEPS_PER_S = 500
WINDOW_S = 10.0
PATIENCE_S = 180.0
POLL_S = 0.05


def crowd(bench: Bench) -> Sequence[Row]:
    """Measure threads that wake up, take a step and sleep again, at the same total rate, few or
    many.
    """
    pairs, resident, up_s = [], [], []
    for edition in bench.rounds(3):
        with bench.laboratory() as laboratory:
            few = _step_us(laboratory, FEW, edition, bench)[0]
        with bench.laboratory() as laboratory:
            many, bytes_of, spent_s = _step_us(laboratory, MANY, edition, bench)
        pairs.append((many, few))
        resident.append(sum(bytes_of) / 1e6)
        up_s.append(spent_s)
    return (
        Row(
            figure="crowd",
            title=f"step with {MANY:,} live threads against {FEW}",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(few for _, few in pairs):.0f} µs of CPU a step, worker and sandbox; {MANY:,} up in {median(up_s):.1f} s",
            reach=1.5,
            missed="each step wakes another thread of execution, whose stack and objects left the caches since its last one",
        ),
        Row(
            figure="crowd",
            title=f"{MANY:,} threads that take steps, resident",
            values=tuple(resident),
            unit="MB",
            baseline="worker and sandbox",
            reach=150,
            missed="each thread holds a stack, a driver and a generator, and one of them has grown",
        ),
    )


def _step_us(
    laboratory: Laboratory, count: int, edition: int, bench: Bench
) -> tuple[float, list[int], float]:
    """Return processor time of a step, resident memory by process, and the seconds until all
    threads were up.
    """
    bundle = laboratory.add("naps", flows.source("naps", flows.NAPS, edition=edition))
    begin = time.monotonic()
    threads = [laboratory.start("naps", round(count * 1000 / STEPS_PER_S)) for _ in range(count)]
    _wait_until_all_perform(laboratory, bundle, threads)
    spent_s = time.monotonic() - begin
    pid = laboratory.worker_pid(bundle)
    if pid is None:
        raise RuntimeError("the worker is gone, although its threads never end")
    pids = family(pid)
    used, steps = _sample(laboratory, pids, threads)
    time.sleep(WINDOW_S / (5 if bench.quick else 1))
    used_later, steps_later = _sample(laboratory, pids, threads)
    return (used_later - used) / 1000 / max(1, steps_later - steps), resident_bytes(pid), spent_s


def _wait_until_all_perform(
    laboratory: Laboratory, bundle: BundleHash, threads: Sequence[ThreadId]
) -> None:
    """Wait until each thread has its first step behind it."""
    end = time.monotonic() + PATIENCE_S
    while laboratory.performing(bundle) < len(threads) * 0.9 or not all(
        step_lines(laboratory.path(thread)) for thread in threads
    ):
        if time.monotonic() > end:
            raise TimeoutError(
                f"not all of {len(threads)} threads have taken a step after {PATIENCE_S:.0f} s"
            )
        time.sleep(POLL_S)


def _sample(
    laboratory: Laboratory, pids: Sequence[int], threads: Sequence[ThreadId]
) -> tuple[int, int]:
    """Return the processor time of the processes so far (in ns) and the finished steps of all
    threads.
    """
    return sum(map(used_ns, pids)), sum(
        len(step_lines(laboratory.path(thread))) for thread in threads
    )


FIGURES = (Figure(name="crowd", measure=crowd),)
