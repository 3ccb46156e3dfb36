"""Cost of a step on disk and in memory, alone and in parallel, early and late in a thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from . import flows
from .baseline import bare_step_us, pinned
from .bench import Bench, Figure
from .laboratory import Laboratory, step_lines, timeline
from .table import Row, ratios

WARM_UP = 50
THREADS = 16
FOLLOWERS = 20
EARLY = (50, 550)
LATE = (4800, 5300)
FAR = (49_000, 50_000)


def durable(bench: Bench) -> Sequence[Row]:
    """Measure one thread on disk."""
    with bench.laboratory() as laboratory:
        pairs = _against_bare(laboratory, steps=bench.scaled(1000), rounds=bench.rounds(9))
    return (
        _row(
            "durable",
            "durable step, one thread, on disk",
            pairs,
            reach=1.5,
            missed="two processes wake each other up at every step, and a busy machine takes its time over that",
        ),
    )


def software(bench: Bench) -> Sequence[Row]:
    """Measure one thread in memory, worker and sandbox on one CPU, by processor time."""
    steps = bench.scaled(3000)
    pairs = []
    with bench.laboratory(in_memory=True) as laboratory, pinned():
        laboratory.add("steps", flows.source("steps", flows.STEPS))
        line = _example(laboratory)
        for _ in bench.rounds(9):
            bare = bare_step_us(laboratory.directory, line, steps, clock=time.process_time)
            pairs.append((laboratory.profile("steps", steps).per_step_us(WARM_UP, steps), bare))
    missed = (
        "a plain loop of what a step cannot do without (a round trip between two processes, two sealed lines, canonical JSON checked and "
        "written) takes about 5 × here already; policy, limits, retries, followers and the handler's context are the rest"
    )
    return (
        _row(
            "software",
            "software per step, tmpfs, one CPU",
            pairs,
            reach=7.0,
            missed=missed,
            cpu=True,
        ),
    )


def followed(bench: Bench) -> Sequence[Row]:
    """Measure the processor time that twenty followers cost the worker."""
    steps = bench.scaled(3000)
    values = []
    with bench.laboratory(in_memory=True) as laboratory:
        laboratory.add("steps", flows.source("steps", flows.STEPS))
        _example(laboratory)
        for _ in bench.rounds(7):
            alone = laboratory.profile("steps", steps).per_step_us(WARM_UP, steps)
            values.append(
                (
                    laboratory.profile("steps", steps, followers=FOLLOWERS).per_step_us(
                        WARM_UP, steps
                    ),
                    alone,
                )
            )
    return (
        Row(
            figure="followed",
            title=f"step with {FOLLOWERS} followers against one with none",
            values=ratios(values),
            unit="×",
            baseline=f"{median(alone for _, alone in values):.0f} µs of CPU a step, worker and sandbox",
            reach=1.5,
            missed="one write per follower and batch, fifty batches a second, on a machine whose CPUs are shared with the followers",
        ),
    )


def growth(bench: Bench) -> Sequence[Row]:
    """Measure a late step against an early one."""
    with bench.laboratory(in_memory=True) as laboratory, pinned():
        laboratory.add("steps", flows.source("steps", flows.STEPS))
        _example(laboratory)
        late = [_late_and_early_us(laboratory, LATE) for _ in bench.rounds(7)]
        far = [_late_and_early_us(laboratory, FAR) for _ in bench.rounds(3)]
    return _growth_row("step 5,000 against step 100", late), _growth_row(
        "step 50,000 against step 100", far
    )


def _late_and_early_us(laboratory: Laboratory, late: tuple[int, int]) -> tuple[float, float]:
    profile = laboratory.profile("steps", late[1])
    return profile.per_step_us(*late), profile.per_step_us(*EARLY)


def _growth_row(title: str, pairs: Sequence[tuple[float, float]]) -> Row:
    return Row(
        figure="growth",
        title=title,
        values=ratios(pairs),
        unit="×",
        baseline=f"{median(early for _, early in pairs):.0f} µs of CPU a step, steps {EARLY[0]}–{EARLY[1]}",
        reach=1.1,
        missed="nothing in a step depends on its number; other work on this CPU fell into the later window",
    )


def many(bench: Bench) -> Sequence[Row]:
    """Measure sixteen threads in one worker, on disk, while all of them run."""
    pairs = []
    steps = bench.scaled(600)
    with bench.laboratory() as laboratory:
        laboratory.add("steps", flows.source("steps", flows.STEPS))
        line = _example(laboratory)
        for _ in bench.rounds(7):
            bare = bare_step_us(laboratory.directory, line, bench.scaled(1000))
            threads = [laboratory.start("steps", steps) for _ in range(THREADS)]
            pairs.append((_together_us([laboratory.wait(thread) for thread in threads]), bare))
    missed = "sixteen threads share one interpreter lock, so the software of a step does not overlap, only its flushes do"
    return (
        _row("many", f"{THREADS} threads in one worker, on disk", pairs, reach=1.3, missed=missed),
    )


def _against_bare(
    laboratory: Laboratory, *, steps: int, rounds: range
) -> list[tuple[float, float]]:
    laboratory.add("steps", flows.source("steps", flows.STEPS))
    line = _example(laboratory)
    pairs = []
    for _ in rounds:
        bare = bare_step_us(laboratory.directory, line, steps)
        pairs.append((timeline(laboratory.run("steps", steps)).per_step_us(WARM_UP, steps), bare))
    return pairs


def _example(laboratory: Laboratory) -> bytes:
    """A step's line; making it has started and warmed the worker."""
    return step_lines(laboratory.run("steps", 200))[100]


def _together_us(journals: Sequence[Path]) -> float:
    """Microseconds a step, all threads together, from when the last has begun to when the first has
    ended.
    """
    finished = [timeline(path).finished_ms for path in journals]
    begin = max(one[0] for one in finished)
    end = min(one[-1] for one in finished)
    count = sum(begin < moment <= end for one in finished for moment in one)
    return (end - begin) * 1000 / max(count, 1)


def _row(
    figure: str,
    title: str,
    pairs: Sequence[tuple[float, float]],
    *,
    reach: float,
    missed: str,
    cpu: bool = False,
) -> Row:
    bare = f"{median(bare for _, bare in pairs):.1f} µs{' of CPU' if cpu else ''} dump + append + fdatasync"
    return Row(
        figure=figure,
        title=title,
        values=ratios(pairs),
        unit="×",
        baseline=bare,
        reach=reach,
        missed=missed,
    )


FIGURES = (
    Figure(name="durable", measure=durable),
    Figure(name="software", measure=software),
    Figure(name="followed", measure=followed),
    Figure(name="growth", measure=growth),
    Figure(name="many", measure=many),
)
