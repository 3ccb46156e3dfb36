"""Child processes: start as leader of a session, wait for the exit, end of the whole process tree.

A child is reaped last. Until then its process id and its group's are not reused, so a signal
reaches no other process.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

TICK_S = 0.05
"""Polling interval on a system without pidfd."""
LONGEST_POLL_S = 3600.0


class Child:
    """Started process with its pipes; its ``with`` block ends it. The methods that send signals may
    be called from any thread, also after its end.

    cpu_s: the processor time that it and its reaped children used; 0 before `end`.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take ownership of a process that leads a session of its own and is not reaped."""
        self._process = process
        self._lock = threading.Lock()
        self.cpu_s = 0.0

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        directory: Path | str,
        environment: Mapping[str, str],
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
    ) -> Self:
        """Start *argv* without a shell.

        Args:
            environment: all of it. stdin, stdout, stderr: as for `subprocess`; a pipe by default.
        Raises:
            OSError, ValueError: it cannot be started.
        """
        return cls(
            subprocess.Popen(
                list(argv),
                cwd=directory,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                bufsize=0,
                start_new_session=True,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        return _pipe(self._process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        return _pipe(self._process.stdout)

    @property
    def stderr(self) -> IO[bytes]:
        return _pipe(self._process.stderr)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the child runs. Does not reap
        it.
        """
        with self._lock:
            code = self._process.returncode
            if code is None:
                result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if result is None:
                    return None
                has_exited = result.si_code == os.CLD_EXITED
                code = result.si_status if has_exited else -result.si_status
        return self._exit_code(code)

    @contextmanager
    def exit_handle(self) -> Iterator[int | None]:
        """Open a descriptor that becomes readable at the child's exit (pidfd); None if the system
        has none to give.
        """
        handle = None
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                handle = os.pidfd_open(self.pid)
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)

    def ends_within(self, timeout_s: float) -> bool:
        """Wait for the child's exit, but no longer than *timeout_s*; return whether it came."""
        if self.exit_code is not None:
            return True
        deadline = time.monotonic() + timeout_s
        with self.exit_handle() as handle:
            poll = select.poll()
            if handle is not None:
                poll.register(handle, select.POLLIN)
            while self.exit_code is None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                poll.poll(poll_ms(left_s, handle))
        return True

    def terminate(self) -> None:
        """Ask the process group to end."""
        self.signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """End the process tree; the child itself is not reaped."""
        self.signal_group(signal.SIGKILL)

    def signal_group(self, number: int) -> None:
        with self._lock, suppress(ProcessLookupError, PermissionError):
            if self._process.returncode is None:
                os.killpg(self.pid, number)

    def signal(self, number: int) -> None:
        """Send a signal to the child alone."""
        with self._lock, suppress(ProcessLookupError):
            if self._process.returncode is None:
                os.kill(self.pid, number)

    def end(self, *, patience_s: float = 0.0, grace_s: float | None = None) -> int:
        """End the tree, close the pipes, reap the child, and return its exit code. Idempotent.

        Args:
            patience_s: time to exit by itself. grace_s: then between TERM and KILL; None: no TERM.
        """
        if self._process.returncode is None:
            if not self.ends_within(patience_s) and grace_s is not None:
                self.terminate()
                self.ends_within(grace_s)
            self.kill()
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._lock:
                _, status, usage = os.wait4(self.pid, 0)
                self._process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_s = usage.ru_utime + usage.ru_stime
        self.close_pipes()
        return self._exit_code(self._process.returncode)

    def _exit_code(self, code: int) -> int:
        return code

    def close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):  # unwritten input has no reader
                    pipe.close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("this child was started without that pipe")
    return stream


def poll_ms(timeout_s: float, handle: int | None) -> float:
    """Return the time for one `poll`, in milliseconds; short without a handle of the child's
    exit.
    """
    return 1000 * min(timeout_s, LONGEST_POLL_S if handle is not None else TICK_S)
