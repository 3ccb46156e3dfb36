"""Cost of the engine around an agent's turn, late in a thread and in parallel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from uncaged_engine.journal import lines

from . import flows
from .baseline import pinned
from .bench import Bench, Figure
from .laboratory import Laboratory, timestamp_of
from .table import Row, ratios

EARLY = (6, 14)
LATE = (196, 204)
THREADS = 200
TURNS = 5
TURN_S = 1.0
ANSWER_CHARACTERS = 2000
ROOT = Path(__file__).parents[1]


def turn(bench: Bench) -> Sequence[Row]:
    """Prompt, journal and the block of an answer: one thread in memory on one CPU, its agent
    answers at once; the processor's time.
    """
    values = []
    with bench.laboratory(in_memory=True) as laboratory, pinned(), agents(laboratory, seconds=0):
        laboratory.add("turns", flows.TURNS)
        laboratory.run("turns", 20)
        for _ in bench.rounds(9):
            profile = laboratory.profile("turns", LATE[1])
            values.append((profile.per_step_us(*LATE), profile.per_step_us(*EARLY)))
    return (
        Row(
            figure="turn",
            title="around an agent's turn, step 200 against step 10",
            values=ratios(values),
            unit="×",
            baseline=f"{median(early for _, early in values):.0f} µs of CPU a turn, steps {EARLY[0]}–{EARLY[1]}",
            reach=3,
            missed="each turn looks at all steps before it",
        ),
    )


def crowd(bench: Bench) -> Sequence[Row]:
    """Threads of one worker whose agents wait, against one such thread alone, on disk."""
    slowest, spread, alone = [], [], []
    threads, turns = bench.scaled(THREADS), bench.scaled(TURNS)
    with bench.laboratory() as laboratory, agents(laboratory, seconds=TURN_S):
        laboratory.add("turns", flows.TURNS)
        laboratory.run("turns", 1)
        for _ in bench.rounds(3):
            one = lasted(laboratory.run("turns", turns))
            started = [laboratory.start("turns", turns) for _ in range(threads)]
            times = [lasted(laboratory.wait(thread)) for thread in started]
            alone.append((one[1] - one[0]) / 1000)
            slowest.append(max(end - begin for begin, end in times) / 1000 / alone[-1])
            ends = [end for _, end in times]
            spread.append((max(ends) - min(ends)) / 1000 / alone[-1])
    title = f"{threads} threads whose agents wait"
    baseline = f"{median(alone):.2f} s for one thread, turns: {turns} of {TURN_S:g} s"
    missed = "the threads' own work between two turns shares one processor, and takes longer than the turns leave it"
    return (
        Row(
            figure="crowd",
            title=f"{title}: the slowest",
            values=tuple(slowest),
            unit="×",
            baseline=baseline,
            reach=2,
            missed=missed,
        ),
        Row(
            figure="crowd",
            title=f"{title}: first to last end",
            values=tuple(spread),
            unit="×",
            baseline=baseline,
            reach=2,
            missed=missed,
        ),
    )


@contextmanager
def agents(laboratory: Laboratory, *, seconds: float, calls: int = 0) -> Iterator[None]:
    """Inside, workers that start know the agent of the figures, as they know any agent of another
    distribution.
    """
    plugin = laboratory.directory / "plugin"
    metadata = plugin / "uncaged_bench-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: uncaged-bench\nVersion: 1\n", "utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        "[uncaged_workflow.agents]\nbench = benchmarks.agent:BenchAgent\n", "utf-8"
    )
    agent: Mapping[str, object] = {
        "use": "bench",
        "characters": ANSWER_CHARACTERS,
        "seconds": seconds,
        "calls": calls,
    }
    config = {
        "agents": {"bench": agent},
        "agent": "bench",
        "limits": {"agents": THREADS, "maxRounds": 10 * LATE[1]},
    }
    laboratory.engine.store.config_path.write_text(json.dumps(config), "utf-8")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(plugin), str(ROOT)])
    sys.path.append(str(plugin))  # the client that starts a thread also looks up its agent
    try:
        yield
    finally:
        sys.path.remove(str(plugin))
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def lasted(journal: Path) -> tuple[int, int]:
    """When a thread was started and when it ended, in milliseconds, by the engine's own clock."""
    written = journal.read_bytes().splitlines(keepends=True)
    if lines.shape_of(written[-1])[0] != "end":
        raise RuntimeError(f"{journal} has no end: {written[-1][:200]!r}")
    return timestamp_of(written[0]), timestamp_of(written[-1])


FIGURES = (Figure(name="turn", measure=turn), Figure(name="crowd", measure=crowd))
