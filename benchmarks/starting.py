"""Time to the first step, and the share of the sandbox in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Cut, RunOptions
from uncaged_engine.cells.cell import Cell
from uncaged_engine.sandbox.mechanism import Mechanism, choose

from . import flows
from .baseline import python_s
from .bench import Bench, Figure
from .laboratory import POLL_S, Laboratory, timeline
from .table import Row, ratios

IMPORTS = "import click, yaml, xxhash, zstandard"
ASKS = 2000
DEADLINE_S = 10.0


def cold(bench: Bench) -> Sequence[Row]:
    """The command line, a new worker and a new sandbox, until the first step was performed."""
    pairs = []
    with bench.laboratory() as laboratory:
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["UNCAGED_WORKFLOW_HOME"] = str(laboratory.engine.store.root)
        for number in range(len(bench.rounds(15)) + 1):
            name = f"once-{number}"
            laboratory.add(name, flows.source(name, flows.STEPS, edition=number))
            bare = python_s("-c", IMPORTS)
            first = _first_step_s(laboratory, name, environment)
            # the first one also fills the store with the shipped flows, and the bytecode cache of a
            # fresh checkout
            if number:
                pairs.append((first, bare))
    return (
        Row(
            figure="cold",
            title="shell to first step performed",
            values=ratios(pairs),
            unit="×",
            baseline=f'{median(bare for _, bare in pairs) * 1000:.0f} ms python -c "{IMPORTS}"',
            reach=2.0,
            missed="three interpreters start for it, two of them with imports, on however many CPUs are free",
        ),
    )


def forking(bench: Bench) -> Sequence[Row]:
    """A fork and a run through the API, each on a new worker, until the new thread's first own step
    was performed.
    """
    pairs = []
    with bench.laboratory() as laboratory:
        for number in bench.rounds(15):
            name = f"forked-{number}"
            bundle = laboratory.add(name, flows.source(name, flows.STEPS, edition=number))
            options = RunOptions(environment={}, directory=laboratory.directory)
            begin = time.time()
            thread = laboratory.engine.run(name, prompt="2", options=options)
            run = timeline(laboratory.wait(thread)).finished_ms[0] / 1000 - begin
            laboratory.end_worker(bundle)
            while laboratory.worker_pid(bundle) is not None:
                time.sleep(POLL_S)
            begin = time.time()
            fork = laboratory.engine.fork(thread, cut=Cut(at=1), options=options)
            pairs.append((timeline(laboratory.wait(fork)).finished_ms[1] / 1000 - begin, run))
    return (
        Row(
            figure="fork",
            title="`fork` to the first step after the kept ones",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(run for _, run in pairs) * 1000:.0f} ms `run` to its first step, each on a new worker",
            reach=1.1,
            missed="the source is brought to disk and read before the worker is asked",
        ),
    )


def sandbox(bench: Bench) -> Sequence[Row]:
    """Measure the sandboxed process against the same program in a plain interpreter."""
    mechanism = choose()
    starts, trips = [], []
    for _ in bench.rounds(15):
        plain_start, plain_trip = _plain()
        start, trip = _sandboxed(mechanism)
        starts.append((start, plain_start))
        trips.append((trip, plain_trip))
    return (
        Row(
            figure="sandbox",
            title=f"sandbox start ({mechanism.name})",
            values=ratios(starts),
            unit="×",
            baseline=f"{median(bare for _, bare in starts) * 1000:.1f} ms the same program, no sandbox",
            reach=1.5,
            missed="namespaces, mounts and the filter cost the kernel a fixed time, which shows more the faster the interpreter starts",
        ),
        Row(
            figure="sandbox",
            title="a round trip to it",
            values=ratios(trips),
            unit="×",
            baseline=f"{median(bare for _, bare in trips) * 1e6:.0f} µs the same program, no sandbox",
            reach=1.1,
            missed="the filter is looked at for two system calls a step; more than that is other work on this machine",
        ),
    )


def _first_step_s(laboratory: Laboratory, name: str, environment: Mapping[str, str]) -> float:
    """Seconds from starting the command to the time that the worker wrote into the first step."""
    begin = time.time()
    done = subprocess.run(
        [*command(), "run", name, "--prompt", "1", "--detach"],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        cwd=laboratory.directory,
    )
    thread = laboratory.engine.thread(done.stdout.decode().strip()).summary.thread_id
    return timeline(laboratory.wait(thread)).finished_ms[0] / 1000 - begin


def command() -> list[str]:
    """Return the installed command beside this interpreter, or its module."""
    script = Path(sys.executable).with_name("uncaged-workflow")
    return [str(script)] if script.exists() else [sys.executable, "-m", "uncaged_cli"]


def _plain() -> tuple[float, float]:
    source = flows.source("steps", flows.STEPS).replace(
        b'"policy": {', b'"policy": {"trusted": True, ', 1
    )
    return _start_and_trip(source, None)


def _sandboxed(mechanism: Mechanism) -> tuple[float, float]:
    return _start_and_trip(flows.source("steps", flows.STEPS), mechanism)


def _start_and_trip(source: bytes, mechanism: Mechanism | None) -> tuple[float, float]:
    """Seconds until a cell is ready, and for one question and its answer."""
    bundle = read_bundle(source)
    begin = time.perf_counter()
    cell = Cell.start(bundle, mechanism)
    ready = time.perf_counter()
    try:
        cell.ask(
            "S", 1, 0, b'{"input":{"prompt":"%d"},"options":{}}' % (ASKS * 2), deadline_s=DEADLINE_S
        )
        asked = time.perf_counter()
        for seq in range(1, ASKS + 1):
            cell.send_outcome(1, seq, b'{"outcome":null}\n', deadline_s=DEADLINE_S)
        return ready - begin, (time.perf_counter() - asked) / ASKS
    finally:
        cell.close()


FIGURES = (
    Figure(name="cold", measure=cold),
    Figure(name="fork", measure=forking),
    Figure(name="sandbox", measure=sandbox),
)
