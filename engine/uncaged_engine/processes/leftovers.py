"""Ledger of the processes of agents, to end after a crash those that a killed worker left running.

A process is ours if the ledger has its process id and its start time, or if its environment carries
the thread's mark; so a process that reuses an id gets no signal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .child import Child

if TYPE_CHECKING:
    import psutil

MARK = "UNCAGED_WORKFLOW_STEP"
"""Environment variable of all processes that an agent starts; its value is the key of the step,
``threadId/seq``.
"""

SAME_START_S = 1.0
"""Tolerance of start times, which are computed from the clock at boot."""

POLL_S = 0.02


def ledger_of(scratch: Path, key: str) -> Path:
    """Return the path of a step's ledger, in the directory for its thread's private files."""
    return scratch / f"processes-{key.rpartition('/')[2]}"


def start_recorded(
    argv: Sequence[str], *, directory: Path, environment: Mapping[str, str], scratch: Path, key: str
) -> Child:
    """Start *argv* without a shell and record it in the ledger.

    Args:
        environment: all of it, the mark included. scratch, key: where and for which step it is
            recorded.
    Raises:
        OSError: it cannot be started.
    """
    ledger = ledger_of(scratch, key)
    ledger.touch()  # crash after this: the next attempt looks for leftovers
    child = Child.start(argv, directory=directory, environment=environment)
    try:
        record_process(ledger, child.pid)
    except BaseException:  # a full disk: a process that is not recorded must not run
        child.end()
        raise
    return child


def record_process(ledger: Path, pid: int) -> None:
    """Add a running process to the ledger."""
    import psutil  # 20 ms, only for agents

    try:
        started_s = psutil.Process(pid).create_time()
    except psutil.Error:
        return
    with ledger.open("a", encoding="utf-8") as record:
        record.write(f"{pid} {started_s}\n")


def kill_leftovers(scratch: Path, owner: str, *, grace_s: float = 2.0) -> int:
    """End the recorded and marked processes with TERM, after *grace_s* with KILL. Return their
    number.

    Args:
        owner: a step's key, or a thread's id for all of its steps.
    """
    import psutil

    ledgers = [ledger_of(scratch, owner)] if "/" in owner else sorted(scratch.glob("processes-*"))
    found = {
        process.pid: process
        for process in (
            *(process for ledger in ledgers for process in recorded(ledger)),
            *marked(owner),
        )
    }
    for process in found.values():
        with suppress(psutil.Error):
            process.terminate()  # psutil checks the start time again
    for process in still_running(found.values(), grace_s):
        with suppress(psutil.Error):
            process.kill()
    still_running(found.values(), grace_s)
    for ledger in ledgers:
        ledger.unlink(missing_ok=True)
    return len(found)


def still_running(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait for processes to end and return those that still run. A zombie has ended."""
    import psutil

    def runs(process: psutil.Process) -> bool:
        try:
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    deadline = time.monotonic() + timeout_s
    while (
        alive := [process for process in processes if runs(process)]
    ) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return alive


def recorded(ledger: Path) -> Iterator[psutil.Process]:
    """Yield the processes of a ledger that still run."""
    import psutil

    lines = ledger.read_text("utf-8").splitlines() if ledger.exists() else []
    for line in lines:
        pid, _, started_s = line.partition(" ")
        with suppress(psutil.Error, ValueError):  # the process has ended, or a crash tore the line
            process = psutil.Process(int(pid))
            if abs(process.create_time() - float(started_s)) < SAME_START_S:
                yield process


def marked(owner: str) -> Iterator[psutil.Process]:
    """Yield the processes of this machine that carry the mark, except this process and its
    ancestors.
    """
    import psutil

    own = psutil.Process(os.getpid())
    ours = {own.pid, *(parent.pid for parent in own.parents())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # the process has ended meanwhile, or belongs to another user
            mark = process.environ().get(MARK, "") if process.pid not in ours else ""
            if mark == owner or mark.startswith(f"{owner}/"):
                yield process
