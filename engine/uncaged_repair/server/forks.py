"""Forked child process with limits on processor time and memory. Its end is always noticed, and its
process group is killed with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
import warnings
from typing import TYPE_CHECKING

from .wire import Message, MessageReader, send

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TICK_S = 0.1
END_WAIT_S = 1.0
IDLE_SHARE = 0.05
"""A child that uses less than this share of the clock's time waits; one that computes uses more,
even if other programs keep the processor busy.
"""
CLOCK_FACTOR = 10.0
"""Limits of processor time allow so many times as much by the clock. That is no limit of the work,
but an end for what waits forever.
"""
INHERITED_FACTOR = 4
"""Limit of a child's data, as a multiple of the memory that its parent has used."""


class ForkedChild:
    """Child process. It sends messages to `reader` and reads its commands from `commands`."""

    def __init__(
        self, work: Callable[[int, int], None], memory_bytes: int, keep: tuple[int, ...]
    ) -> None:
        """Fork and run *work* with the descriptors of its commands and its answers; *keep* are
        closed in the child.
        """
        answers, answer_in = os.pipe()
        command_out, self.commands = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns if the repository has started threads; the last run is cold anyway
            warnings.simplefilter("ignore")
            self.pid = os.fork()
        if not self.pid:
            for descriptor in (answers, self.commands, *keep):
                os.close(descriptor)
            _run_child(work, command_out, answer_in, memory_bytes)
        os.close(answer_in)
        os.close(command_out)
        self.reader = MessageReader(answers)
        self.cpu_s = self.used_s = 0.0
        self._status: int | None = None

    def ask(self, message: Message) -> None:
        send(self.commands, message)

    def follow(
        self, on_message: Callable[[Message], None], silence_s: float, total_s: float
    ) -> str:
        """Pass on each message up to the one with "end"; return "finished", "timeout", "late" or
        "died".

        silence_s: longest time without a message, by the clock; a message with "limit_s" changes
        it. total_s: processor time of the child, and time by the clock of one that waits.
        """
        whole = silence = _Spell(self.pid)
        while True:
            self.used_s = whole.used_s()
            if silence.is_over(silence_s):
                return "timeout"
            if self.used_s >= total_s or whole.is_over(total_s):
                return "late"
            ready, _, _ = select.select([self.reader.descriptor], [], [], TICK_S)
            if not ready:
                if self._has_ended():
                    return self._ending()
                continue
            for message in self.reader.take():
                silence = _Spell(self.pid)
                silence_s = message.get("limit_s", silence_s)
                on_message(message)
                if "end" in message:
                    return "finished"
            if self.reader.ended:
                return self._ending()

    def finish(self) -> None:
        """Kill the child with its process group, reap it, and store its processor time."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(self.pid, signal.SIGKILL)
        self._has_ended(wait=True)
        for descriptor in (self.reader.descriptor, self.commands):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _has_ended(self, wait: bool = False) -> bool:
        if self._status is None:
            with contextlib.suppress(ChildProcessError):
                pid, status, usage = os.wait4(self.pid, 0 if wait else os.WNOHANG)
                if pid:
                    self._status = status
                    self.cpu_s = usage.ru_utime + usage.ru_stime
        return self._status is not None

    def _ending(self) -> str:
        """Return "timeout" for a child that used up its processor time, else "died"."""
        end = time.monotonic() + END_WAIT_S
        # its pipe is closed: it is ending, or it closed the pipe on purpose
        while not self._has_ended() and time.monotonic() < end:
            select.select([], [], [], 0.005)
        status = self._status
        slow = (
            status is not None
            and os.WIFSIGNALED(status)
            and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGXCPU)
        )
        return "timeout" if slow else "died"


class _Spell:
    """Time of the process *pid* from now on, by the clock and of its processor."""

    def __init__(self, pid: int) -> None:
        self._clock_id = (~pid << 3) | 2  # how Linux numbers the processor clocks of processes
        self._since, self._cpu_s = time.monotonic(), self._cpu()

    def used_s(self) -> float:
        """Return the processor time of a process that computes, and the time by the clock of one
        that waits.
        """
        passed, cpu_s = time.monotonic() - self._since, self._cpu() - self._cpu_s
        return passed if cpu_s < IDLE_SHARE * passed else cpu_s

    def is_over(self, limit_s: float) -> bool:
        """Return whether a process that waits has passed the limit by the clock, or one that
        computes has passed it by far.
        """
        passed, cpu_s = time.monotonic() - self._since, self._cpu() - self._cpu_s
        waits = cpu_s < IDLE_SHARE * passed
        return passed >= (limit_s if waits else CLOCK_FACTOR * limit_s)

    def _cpu(self) -> float:
        """Return the processor time of the process so far, without its children's."""
        try:
            return time.clock_gettime(self._clock_id)
        except OSError:  # it has ended, or this is no Linux
            return 0.0


def limit_cpu(cpu_s: float, overrun: Callable[[int, FrameType | None], None] | None = None) -> None:
    """End this process after *cpu_s* more seconds of processor time: by timer, and by the kernel's
    own limit a little later.

    overrun: what the timer calls instead of ending the process at once.
    """
    signal.signal(signal.SIGPROF, overrun or signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + cpu_s) + 3
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def reap() -> None:
    """Reap orphans that were reparented to this process. It must have no child of its own."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _run_child(
    work: Callable[[int, int], None], commands: int, answers: int, memory_bytes: int
) -> None:
    """Run *work* and exit; never return into the code of the parent."""
    code = 1
    try:
        os.setpgid(0, 0)
        _limit_memory(memory_bytes)
        work(commands, answers)
        code = 0
    finally:
        os._exit(code)


def _limit_memory(memory_bytes: int) -> None:
    """Let the child's data grow by about *memory_bytes* beyond what it inherits. Not every sandbox
    shows how much that is, so it is estimated.
    """
    inherited = INHERITED_FACTOR * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = memory_bytes + inherited
        resource.setrlimit(
            resource.RLIMIT_DATA,
            (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
        )
