"""Memory of a thousand waiting threads."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

from . import flows
from .bench import Bench, Figure
from .table import Row

THREADS = 1000
PATIENCE_S = 120.0
POLL_S = 0.05


def waiting(bench: Bench) -> Sequence[Row]:
    """One worker and its sandbox, each thread inside an effect that waits."""
    with bench.laboratory() as laboratory:
        bundle = laboratory.add("waits", flows.source("waits", flows.WAITS))
        begin = time.monotonic()
        for _ in range(THREADS):
            laboratory.start("waits")
        pid = laboratory.worker_pid(bundle)
        while laboratory.performing(bundle) < THREADS:
            if time.monotonic() - begin > PATIENCE_S:
                raise TimeoutError(
                    f"not all of {THREADS} threads are inside their effect after {PATIENCE_S:.0f} s"
                )
            time.sleep(POLL_S)
        spent_s = time.monotonic() - begin
        resident = resident_bytes(pid)
    return (
        Row(
            figure="waiting",
            title=f"{THREADS:,} waiting threads, resident",
            values=(sum(resident) / 1e6,),
            unit="MB",
            baseline=f"worker {resident[0] / 1e6:.0f} MB, sandbox {sum(resident[1:]) / 1e6:.0f} MB; up in {spent_s:.1f} s",
            reach=150,
            missed="each thread holds a stack, a driver and a generator, and one of them has grown",
        ),
    )


def resident_bytes(pid: int | None) -> list[int]:
    """The worker's resident memory, then that of each process below it."""
    worker = psutil.Process(pid)
    return [process.memory_info().rss for process in (worker, *worker.children(recursive=True))]


FIGURES = (Figure(name="waiting", measure=waiting),)
