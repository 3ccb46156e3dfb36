"""What it costs to bring a generator back to where its journal stands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine import lines
from uncaged_engine.api import RunOptions
from uncaged_engine.blobs import Blobs
from uncaged_engine.cell import CellLimits
from uncaged_engine.cells import Cells
from uncaged_engine.known_effects import KNOWN
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.seat import Seat

from . import flows
from .baseline import loads_us
from .bench import Bench, Figure
from .laboratory import Laboratory, step_lines
from .table import Row, ratios

STEPS = 5000
DEADLINE_S = 30.0


def replay(bench: Bench) -> Sequence[Row]:
    """From a journal on disk to the generator's present, in a sandbox that lives."""
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("stops", flows.source("stops", flows.STOPS))
        thread = laboratory.start("stops", STEPS)
        finished = step_lines(laboratory.wait(thread))
        laboratory.end_worker(bundle)
        pairs = _timed(laboratory, bundle, thread, finished, rounds=bench.rounds(9))
        again = _performed_again(laboratory, thread)
    return (
        Row(
            figure="replay",
            title="replay of a step: read, checked, run again",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs):.1f} µs json.loads of its line",
            reach=3.0,
            missed="reading and checking two lines, and running the bundle over one, share the time of little more than two parses",
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
    laboratory: Laboratory, bundle: BundleHash, thread: ThreadId, finished: Sequence[bytes], *, rounds: range
) -> list[tuple[float, float]]:
    store = laboratory.engine.store
    cells = Cells(store.load_bundle(bundle, KNOWN), choose(), CellLimits())
    cells.shared()
    pairs = []
    try:
        for slot in rounds:
            bare = loads_us(finished)
            begin = time.perf_counter()
            journal = laboratory.journal(thread)
            seat = Seat(
                cells=cells,
                slot=slot,
                journal=journal,
                thread=thread,
                start=journal.history.start,
                blobs=Blobs(store.blobs),
                deadline_s=DEADLINE_S,
            )
            seat.begin(journal.history)
            pairs.append(((time.perf_counter() - begin) / len(finished) * 1e6, bare))
            seat.leave()
            journal.close()
    finally:
        cells.close()
    return pairs


def _performed_again(laboratory: Laboratory, thread: ThreadId) -> int:
    """Resume the thread in a worker and count what it did to steps that were finished already."""
    path = laboratory.path(thread)
    before = path.stat().st_size
    laboratory.engine.resume(thread, options=RunOptions(environment={}, directory=laboratory.directory))
    laboratory.wait(thread)
    added = path.read_bytes()[before:].splitlines(keepends=True)
    shapes = [lines.shape_of(line) for line in added]
    if ("step", STEPS + 1) not in shapes:
        raise RuntimeError(f"the resumed thread did not go on; its journal got {shapes}")
    return sum(0 < seq <= STEPS for _, seq in shapes)


FIGURES = (Figure(name="replay", measure=replay),)
