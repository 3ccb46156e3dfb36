"""What a killed worker's agents left running can be ended later, and no process that merely got the same number is ever signalled.

A process is ours when its number and its start time both stand in the thread's record, or when its environment carries the thread's mark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "UNCAGED_WORKFLOW_THREAD"
"""The variable in the environment of everything that an agent starts; its value is the thread's id."""

SAME_START_S = 1.0
"""Start times are computed from the clock at boot, which moves a little."""


def ledger_of(scratch: Path) -> Path:
    """The record of processes, in the directory for a thread's private files."""
    return scratch / "processes"


def record_process(ledger: Path, pid: int) -> None:
    """Add a running process to the record of its thread."""
    import psutil  # 20 ms, which only agents pay

    try:
        started_s = psutil.Process(pid).create_time()
    except psutil.Error:
        return
    with ledger.open("a", encoding="utf-8") as record:
        record.write(f"{pid} {started_s}\n")


def kill_leftovers(ledger: Path, thread_id: str, *, grace_s: float = 2.0) -> int:
    """End what is recorded in *ledger* or marked with *thread_id*: TERM, after *grace_s* KILL. Return how many there were."""
    import psutil

    found = {process.pid: process for process in (*recorded(ledger), *marked(thread_id))}
    for process in found.values():
        with suppress(psutil.Error):
            process.terminate()  # psutil looks again whether the number still belongs to this process
    _, alive = psutil.wait_procs(found.values(), timeout=grace_s)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_s)
    ledger.unlink(missing_ok=True)
    return len(found)


def recorded(ledger: Path) -> Iterator[psutil.Process]:
    """The processes of the record that still run."""
    import psutil

    lines = ledger.read_text("utf-8").splitlines() if ledger.exists() else []
    for line in lines:
        pid, _, started_s = line.partition(" ")
        with suppress(psutil.Error, ValueError):  # it has ended, or a crash tore the line
            process = psutil.Process(int(pid))
            if abs(process.create_time() - float(started_s)) < SAME_START_S:
                yield process


def marked(thread_id: str) -> Iterator[psutil.Process]:
    """The processes of this machine that carry the mark, ourselves and what we came from excepted."""
    import psutil

    own = psutil.Process(os.getpid())
    ours = {own.pid, *(parent.pid for parent in own.parents())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended meanwhile, or it is somebody else's
            if process.pid not in ours and process.environ().get(MARK) == thread_id:
                yield process
