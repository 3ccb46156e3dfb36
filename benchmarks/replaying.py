"""Cost of a replay: from a journal on disk to the generator's current state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import RunOptions
from uncaged_engine.cells.cell import CellLimits
from uncaged_engine.cells.session import BundleSession
from uncaged_engine.cells.shared import Cells
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import lines
from uncaged_engine.journal.infolog import InfoLog
from uncaged_engine.sandbox.mechanism import choose

from . import flows
from .baseline import loads_us
from .bench import Bench, Figure
from .laboratory import Laboratory, step_lines
from .table import Row

STEPS = 5000
DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Microseconds for one step: parsing its line alone, reading and checking the journal, bringing
    the generator to its present.
    """

    loads_us: float
    read_us: float
    replay_us: float


def replay(bench: Bench) -> Sequence[Row]:
    """Measure a replay in a running sandbox."""
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("stops", flows.source("stops", flows.STOPS))
        thread = laboratory.start("stops", STEPS)
        finished = step_lines(laboratory.wait(thread))
        laboratory.end_worker(bundle)
        rounds = _timed(laboratory, bundle, thread, finished, rounds=bench.rounds(9))
        again = _performed_again(laboratory, thread)
    loads = f"{median(one.loads_us for one in rounds):.1f} µs json.loads of its line"
    return (
        Row(
            figure="replay",
            title="replay of a step",
            values=tuple(one.replay_us / one.loads_us for one in rounds),
            unit="×",
            baseline=loads,
            reach=3.0,
            missed="the bundle itself, its effect's JSON and its digest cost about what a parse of the outcome costs",
        ),
        Row(
            figure="replay",
            title="the same with reading and checking the journal",
            values=tuple((one.read_us + one.replay_us) / one.loads_us for one in rounds),
            unit="×",
            baseline=loads,
        ),
        Row(
            figure="replay",
            title=f"performed again by a resume of {STEPS:,} steps",
            values=(again,),
            unit="",
            baseline="intents of finished steps after the resume",
            reach=0,
            exact=True,
            missed="a resume performed a finished step again",
        ),
    )


def _timed(
    laboratory: Laboratory,
    bundle: BundleHash,
    thread: ThreadId,
    finished: Sequence[bytes],
    *,
    rounds: range,
) -> list[Round]:
    store = laboratory.engine.store
    cells = Cells(store.load_bundle(bundle, KNOWN), choose(), CellLimits())
    cells.shared()
    measured = []
    try:
        for slot in rounds:
            bare = loads_us(finished)
            begin = time.perf_counter()
            journal = laboratory.journal(thread)
            read = time.perf_counter()
            session = BundleSession(
                cells=cells,
                slot=slot,
                journal=journal,
                thread=thread,
                start=journal.history.start,
                deadline_s=DEADLINE_S,
                info=InfoLog(store.info_path(bundle, thread), lambda: 0),
            )
            session.begin(journal.history)
            done = time.perf_counter()
            per_step = 1e6 / len(finished)
            measured.append(
                Round(
                    loads_us=bare,
                    read_us=(read - begin) * per_step,
                    replay_us=(done - read) * per_step,
                )
            )
            session.close()
            journal.close()
    finally:
        cells.close()
    return measured


def _performed_again(laboratory: Laboratory, thread: ThreadId) -> int:
    """Resume the thread in a worker and count what it did to steps that were finished already."""
    path = laboratory.path(thread)
    before = path.stat().st_size
    laboratory.engine.resume(
        thread, options=RunOptions(environment={}, directory=laboratory.directory)
    )
    laboratory.wait(thread)
    added = path.read_bytes()[before:].splitlines(keepends=True)
    shapes = [lines.shape_of(line) for line in added]
    if ("step", STEPS + 1) not in shapes:
        raise RuntimeError(f"the resumed thread did not go on; its journal got {shapes}")
    return sum(0 < seq <= STEPS for _, seq in shapes)


FIGURES = (Figure(name="replay", measure=replay),)
