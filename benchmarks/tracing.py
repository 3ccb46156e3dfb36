"""Cost of keeping the trace of an agent's tool calls, per role step."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services import secrets
from uncaged_engine.services.blobs import BlobDirectory

from . import flows
from .bench import Bench, Figure
from .counts import PATIENT_WORKER, traced_flushes
from .table import Row
from .turns import agents

CALLS = 50
FEW, MORE = 2, 6
RESULT = "A line of the result, of a usual length for a command or a file.\n" * 30
ARGUMENTS = {"path": "src/some/module.py", "old": "a line of code\n" * 5, "new": "another\n" * 5}
SECRETS = {f"value-of-secret-{number}": f"NAME_{number}" for number in range(5)}
MAX_CPU_MS = 5


def trace(bench: Bench) -> Sequence[Row]:
    """Count the flushes that a trace adds to a role step, and measure its processor time."""
    return (*_flushes(bench), _cpu(bench))


def _flushes(bench: Bench) -> Sequence[Row]:
    if shutil.which("strace") is None:
        return ()
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("turns", flows.TURNS)
        counts = []
        for calls in (0, CALLS):
            with agents(laboratory, seconds=0, calls=calls):
                few, more = (
                    traced_flushes(laboratory, "turns", bundle, [turns], worker=PATIENT_WORKER)
                    for turns in (FEW, MORE)
                )
            counts.append((more - few) / (MORE - FEW))
    plain, traced = counts
    return (
        Row(
            figure="trace",
            title=f"flushes that a trace of {CALLS} tool calls adds to a role step",
            values=(traced - plain,),
            unit="",
            baseline=f"counted: {plain:g} flushes a step without a trace",
            reach=1,
            missed="something else than the blob is brought to disk",
        ),
    )


def _cpu(bench: Bench) -> Row:
    values = []
    with bench.directory(in_memory=True) as directory:
        blobs = BlobDirectory(directory)
        for number in bench.rounds(9):
            begin = time.process_time()
            blobs.put_aside(_made(number).encoded())
            values.append((time.process_time() - begin) * 1000)
    return Row(
        figure="trace",
        title=f"processor time of a trace of {CALLS} tool calls",
        values=tuple(values),
        unit="ms",
        baseline="its calls noted, encoded and put as a blob on tmpfs",
        reach=MAX_CPU_MS,
        missed="each call's arguments are encoded and its result is digested",
    )


def _made(number: int) -> AgentTrace:
    found = AgentTrace(lambda value: secrets.redact(value, SECRETS))
    for call in range(CALLS):
        found.add("edit", {**ARGUMENTS, "call": f"{number}/{call}"}, RESULT, duration_ms=3)
    return found


FIGURES = (Figure(name="trace", measure=trace),)
