"""Runner of programs with a timeout, recorded in the ledger of leftovers while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .communicate import OutputBuffer, communicate
from .leftovers import kill_leftovers, start_recorded

MAX_STDERR_BYTES = 1 << 16


class Cancellation(Protocol):
    """Cancellation token: the door's `Cancel`."""

    @property
    def requested(self) -> bool: ...

    def on_request(self, action: Callable[[], None]) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Result of a program.

    exit_code: negative for a signal. stdout: up to the cap; stderr: its last part. overlong: stdout
    exceeded its cap.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    overlong: bool
    timed_out: bool
    cancelled: bool


def run_program(
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    timeout_s: float,
    cancel: Cancellation,
    scratch: Path,
    key: str,
    grace_s: float = 5.0,
    max_stdout_bytes: int = 1 << 20,
    max_stderr_bytes: int = MAX_STDERR_BYTES,
    on_stdout: Callable[[bytes], None] | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
) -> Finished:
    """Run *argv* without a shell, write *stdin* to it, and return its result.

    At the timeout or on cancellation its group gets TERM, after *grace_s* KILL. Every process with
    the step's mark is ended, too.

    Args:
        environment: all of it, the mark included. scratch, key: directory of the ledger, and the
            step.
        on_stdout, on_stderr: called with each chunk of that stream; must not block. An exception
            from them ends the program.
    Raises:
        OSError: the program cannot be started.
    """
    stdout = OutputBuffer(max_bytes=max_stdout_bytes, on_data=on_stdout)
    stderr = OutputBuffer(max_bytes=max_stderr_bytes, keep_last=True, on_data=on_stderr)
    with start_recorded(
        argv, directory=directory, environment=environment, scratch=scratch, key=key
    ) as program:
        timed_out = communicate(
            program,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            deadline=time.monotonic() + timeout_s,
            grace_s=grace_s,
            on_cancel=cancel.on_request,
        )
        exit_code = program.end()
    cancelled = cancel.requested
    # a process that left the group would write into the worktree during its snapshot
    kill_leftovers(scratch, key)
    return Finished(
        exit_code=exit_code,
        stdout=bytes(stdout.data),
        stderr=bytes(stderr.data),
        overlong=stdout.truncated,
        timed_out=timed_out,
        cancelled=cancelled,
    )
