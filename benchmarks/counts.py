"""Counts that do not depend on the machine: flushes and bytes of a step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from uncaged_bundles.ids import BundleHash
from uncaged_engine.journal import lines
from uncaged_engine.journal.codec import decode, encode

from . import flows
from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row

FLUSHES = ("fdatasync", "fsync", "sync_file_range", "msync", "syncfs", "sync")
FEW, MORE = 10, 60
WORKER = ("-m", "uncaged_engine.worker")
PATIENT_WORKER = (
    "-c",
    "import functools, runpy\n"
    "from uncaged_engine.cells import cell\n"
    "cell.CellLimits = functools.partial(cell.CellLimits, slow_ms=60_000)\n"
    "runpy.run_module('uncaged_engine.worker', run_name='__main__', alter_sys=True)",
)
"""Interpreter arguments of a worker that waits for a bundle's answer on a busy machine, too. After
five milliseconds it would flush the outcome alone.
"""
THREADS, STEPS_EACH = 16, 625
EARLY_STEP, LATE_STEP = 10, 5000


def flushes(bench: Bench) -> Sequence[Row]:
    """Count the flushes of the worker and its sandbox, by strace."""
    title = "flushes per step after creation"
    if shutil.which("strace") is None:
        return (
            Row(
                figure="flushes",
                title=title,
                unit="",
                baseline="",
                remark="strace is not installed",
            ),
        )
    with bench.laboratory() as laboratory:
        few = _flushes(laboratory, FEW, 1, worker=PATIENT_WORKER)
        more = _flushes(laboratory, MORE, 1, worker=PATIENT_WORKER)
    return (
        Row(
            figure="flushes",
            title=title,
            values=((more - few) / (MORE - FEW),),
            unit="",
            baseline=f"counted: {few} for {FEW} steps, {more} for {MORE}",
            reach=1,
            exact=True,
            missed="something else than the step's own line is brought to disk",
        ),
    )


def shared(bench: Bench) -> Sequence[Row]:
    """Count the same for parallel threads of one worker and one sandbox process."""
    steps = THREADS * STEPS_EACH
    title = f"flushes per step, {THREADS} threads, {steps:,} steps"
    if shutil.which("strace") is None:
        return (
            Row(
                figure="shared", title=title, unit="", baseline="", remark="strace is not installed"
            ),
        )
    counts = []
    with bench.laboratory() as laboratory:
        for attempt in bench.rounds(5):
            counts.append(_flushes(laboratory, STEPS_EACH, attempt, threads=THREADS, light=True))
    return (
        Row(
            figure="shared",
            title=title,
            values=tuple(count / steps for count in counts),
            unit="",
            baseline=f"counted: {min(counts):,} at least",
            reach=1.15,
            missed="a thread waits five milliseconds for its bundle's process and its answer, and a busy machine takes longer",
        ),
    )


def sizes(bench: Bench) -> Sequence[Row]:
    """Count the bytes that a step adds to the journal besides its effect and its outcome."""
    with bench.laboratory(in_memory=True) as laboratory:
        laboratory.add("steps", flows.source("steps", flows.STEPS))
        journal = laboratory.run("steps", LATE_STEP).read_bytes()
    early, late = _added_bytes(journal, EARLY_STEP), _added_bytes(journal, LATE_STEP)
    digits = 2 * (len(str(LATE_STEP)) - len(str(EARLY_STEP)))
    return (
        Row(
            figure="sizes",
            title="bytes per step beside effect and outcome",
            values=(late,),
            unit="B",
            baseline=f"step {LATE_STEP:,}; {early} B at step {EARLY_STEP}",
            reach=300,
            missed="the journal's lines have grown",
        ),
        Row(
            figure="sizes",
            title=f"the same, step {LATE_STEP:,} less step {EARLY_STEP}",
            values=(late - early,),
            unit="B",
            baseline="the digits of a step's number, in two lines",
            reach=digits,
            exact=True,
            missed="a step's line depends on its number in more than its digits",
        ),
    )


def _flushes(
    laboratory: Laboratory,
    steps: int,
    attempt: int,
    *,
    threads: int = 1,
    light: bool = False,
    worker: Sequence[str] = WORKER,
) -> int:
    """Count the flushes of a worker of its own for threads of so many steps each.

    Args:
        light: let the kernel stop the worker at flushes only, so that its other calls take no
            longer than without strace.
    """
    name = f"steps-{steps}-{attempt}"
    bundle = laboratory.add(name, flows.source(name, flows.STEPS))
    return traced_flushes(laboratory, name, bundle, [steps] * threads, light=light, worker=worker)


def traced_flushes(
    laboratory: Laboratory,
    name: str,
    bundle: BundleHash,
    prompts: Sequence[int],
    *,
    light: bool = False,
    worker: Sequence[str] = WORKER,
) -> int:
    """Count the flushes of a worker of its own for a thread with each prompt. light: as above."""
    log = laboratory.directory / f"{name}.strace"
    ready, theirs = os.pipe()
    arguments = [str(laboratory.engine.store.root), bundle, str(theirs)]
    watch = ["-f", "-qq", "-e", f"trace={','.join(FLUSHES)}", "-e", "signal=none", "-o", str(log)]
    traced = ["strace", *watch, *(["--seccomp-bpf"] if light else [])]
    traced += [sys.executable, *worker, *arguments]
    with subprocess.Popen(traced, pass_fds=(theirs,)) as process:
        os.close(theirs)
        os.read(ready, 1)
        os.close(ready)
        for thread in [laboratory.start(name, prompt) for prompt in prompts]:
            laboratory.wait(thread)
        process.wait()  # it leaves by itself, and only then strace has written everything
    return _calls(log)


def _calls(log: Path) -> int:
    return sum(" <... " not in line and "(" in line for line in log.read_text("utf-8").splitlines())


def _added_bytes(journal: bytes, seq: int) -> int:
    """Return the bytes of a step's lines without its effect and its outcome."""
    found = [line + b"\n" for line in journal.split(b"\n") if line.startswith(b'{"seq":%d,' % seq)]
    intent = next(line for line in found if lines.shape_of(line)[0] == "intent")
    step = next(line for line in found if lines.shape_of(line)[0] == "step")
    record = decode(step[:-1])
    outcome = record["outcome"] if isinstance(record, dict) else None
    return (
        sum(map(len, found)) - len(lines.effect_of_intent(intent)) - len(encode(outcome).encode())
    )


FIGURES = (
    Figure(name="flushes", measure=flushes),
    Figure(name="shared", measure=shared),
    Figure(name="sizes", measure=sizes),
)
