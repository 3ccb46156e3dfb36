"""Process of an agent: recorded while it may run, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from uncaged_engine.services.processes import (
    has_ended,
    kill_leftovers,
    signal_group,
    start_recorded,
)

TICK_S = 0.05


class AgentProcess:
    """Running agent, leader of a session of its own. It is reaped last, so that its process id is
    not reused before its group is gone.
    """

    def __init__(self, process: subprocess.Popen[bytes], *, scratch: Path, key: str) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("an agent needs three pipes")
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr
        self._process = process
        self._scratch = scratch
        self._key = key

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        scratch: Path,
        key: str,
    ) -> AgentProcess:
        """Start *argv* without a shell.

        Args:
            environment: all of it, the mark included. scratch, key: where and for which step it is
                recorded.
        Raises:
            OSError: it cannot be started.
        """
        process = start_recorded(
            argv, directory=directory, environment=environment, scratch=scratch, key=key
        )
        return cls(process, scratch=scratch, key=key)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code: negative for a signal; None while it runs."""
        return exit_code(self.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, *, patience_s: float, grace_s: float) -> None:
        """Let it exit by itself for *patience_s*, then TERM, after *grace_s* KILL; end what it left
        behind.
        """
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(OSError):
                pipe.close()
        pid = self._process.pid
        if not self._ends_within(patience_s):
            signal_group(pid, signal.SIGTERM)
            self._ends_within(grace_s)
        signal_group(pid, signal.SIGKILL)  # it is not reaped yet, so the number is its own
        self._process.wait()
        kill_leftovers(self._scratch, self._key)

    def _ends_within(self, timeout_s: float) -> bool:
        handle = exit_handle(self.pid)
        try:
            poll = select.poll()
            if handle is not None:
                poll.register(handle, select.POLLIN)
            deadline = time.monotonic() + timeout_s
            while not has_ended(self._process.pid):
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                poll.poll(1000 * (left_s if handle is not None else min(left_s, TICK_S)))
            return True
        finally:
            if handle is not None:
                os.close(handle)


def exit_code(pid: int) -> int | None:
    """Return the exit code of a child that is not reaped yet: negative for a signal; None while it
    runs.
    """
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


async def wait_for_exit(pid: int) -> None:
    """Wait in the loop until a child has ended; it is not reaped."""
    handle = exit_handle(pid)
    if handle is None:
        while not has_ended(pid):
            await asyncio.sleep(TICK_S)
        return
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def exit_handle(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a child has ended, if the system has one; the
    caller closes it.
    """
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
