"""Runner of programs with a timeout. Ends the program's process group with it.

Each program leads a session of its own. Its group is killed after its exit and before it is reaped,
so its process id is still its own.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..door.effects import Cancel
from .leftovers import kill_leftovers, start_recorded

CHUNK_BYTES = 1 << 16
MAX_STDERR_BYTES = 1 << 16
TICK_S = 0.05
"""Polling interval on a system without pidfd."""
DRAIN_S = 1.0
"""Wait for pipes that processes outside of the group hold open."""


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


@dataclass(slots=True, kw_only=True)
class Streams:
    """Buffers of a program: output so far, and the rest of its input."""

    stdin: memoryview
    max_stdout_bytes: int
    max_stderr_bytes: int
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    overlong: bool = False
    on_stdout: Callable[[bytes], None] | None = None
    on_stderr: Callable[[bytes], None] | None = None

    def take(self, name: str, data: bytes) -> None:
        if name == "stderr":
            if self.on_stderr is not None:
                self.on_stderr(data)
            self.stderr += data
            del self.stderr[: -self.max_stderr_bytes]
            return
        if self.on_stdout is not None:
            self.on_stdout(data)
        room = self.max_stdout_bytes - len(self.stdout)
        self.overlong = self.overlong or len(data) > room
        self.stdout += data[:room]


def run_program(
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    timeout_s: float,
    cancel: Cancel,
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
    process = start_recorded(
        argv, directory=directory, environment=environment, scratch=scratch, key=key
    )
    streams = Streams(
        stdin=memoryview(stdin),
        max_stdout_bytes=max_stdout_bytes,
        max_stderr_bytes=max_stderr_bytes,
        on_stdout=on_stdout,
        on_stderr=on_stderr,
    )
    exit_code, timed_out = _see_it_through(
        process, streams, cancel=cancel, timeout_s=timeout_s, grace_s=grace_s
    )
    cancelled = cancel.requested
    # a process that left the group would write into the worktree during its snapshot
    kill_leftovers(scratch, key)
    return Finished(
        exit_code=exit_code,
        stdout=bytes(streams.stdout),
        stderr=bytes(streams.stderr),
        overlong=streams.overlong,
        timed_out=timed_out,
        cancelled=cancelled,
    )


def _see_it_through(
    process: subprocess.Popen[bytes],
    streams: Streams,
    *,
    cancel: Cancel,
    timeout_s: float,
    grace_s: float,
) -> tuple[int, bool]:
    """Serve the program's pipes until it and its group have ended.

    Returns:
        The exit code, and whether the timeout ended the program.
    """
    timed_out = False
    wake_read, wake_write = os.pipe()
    try:
        with cancel.on_request(lambda: _wake(wake_write)), selectors.DefaultSelector() as selector:
            timed_out = _attend(
                process,
                selector,
                streams,
                wake_read=wake_read,
                cancel=cancel,
                timeout_s=timeout_s,
                grace_s=grace_s,
            )
            # the leader is not reaped yet, so the id is its own
            signal_group(process.pid, signal.SIGKILL)
            _drain(selector, streams)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        exit_code = process.wait()
        os.close(wake_read)
        os.close(wake_write)
    return exit_code, timed_out


def _attend(
    process: subprocess.Popen[bytes],
    selector: selectors.BaseSelector,
    streams: Streams,
    *,
    wake_read: int,
    cancel: Cancel,
    timeout_s: float,
    grace_s: float,
) -> bool:
    """Read and write until the program has ended; return whether the timeout ended it."""
    _register(selector, process, streams)
    selector.register(wake_read, selectors.EVENT_READ, None)
    exit_handle = _exit_handle(process.pid)
    if exit_handle is not None:
        selector.register(exit_handle, selectors.EVENT_READ, None)
    deadline, kill_at, timed_out = time.monotonic() + timeout_s, float("inf"), False
    try:
        while not has_ended(process.pid):
            now = time.monotonic()
            if kill_at == float("inf") and (cancel.requested or now >= deadline):
                timed_out = not cancel.requested
                signal_group(process.pid, signal.SIGTERM)
                kill_at = now + grace_s
                _forget(selector, wake_read)  # it stays readable
            elif now >= kill_at:
                signal_group(process.pid, signal.SIGKILL)
            until = min(deadline, kill_at) if kill_at == float("inf") else kill_at
            pause_s = max(0.0, until - now) or TICK_S
            _move(selector, streams, pause_s if exit_handle is not None else min(pause_s, TICK_S))
    finally:
        if exit_handle is not None:
            _forget(selector, exit_handle)
            os.close(exit_handle)
        _forget(selector, wake_read)
    return timed_out


def _register(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes], streams: Streams
) -> None:
    events = {
        "stdin": selectors.EVENT_WRITE,
        "stdout": selectors.EVENT_READ,
        "stderr": selectors.EVENT_READ,
    }
    for name, pipe in (
        ("stdin", process.stdin),
        ("stdout", process.stdout),
        ("stderr", process.stderr),
    ):
        if pipe is None:
            continue
        if name == "stdin" and not streams.stdin:
            pipe.close()
            continue
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe, events[name], (name, pipe))


def _move(selector: selectors.BaseSelector, streams: Streams, timeout_s: float) -> None:
    """Wait for an event and transfer the bytes that are ready."""
    for key, _ in selector.select(timeout_s):
        if key.data is None:  # the exit handle or the wake pipe
            continue
        name, pipe = key.data
        try:
            if name == "stdin":
                streams.stdin = streams.stdin[os.write(key.fd, streams.stdin[:CHUNK_BYTES]) :]
                done = not streams.stdin
            else:
                data = os.read(key.fd, CHUNK_BYTES)
                streams.take(name, data)
                done = not data
        except BlockingIOError:
            continue
        except BrokenPipeError:  # the program closed its input
            done = True
        if done:
            selector.unregister(pipe)
            with suppress(BrokenPipeError):
                pipe.close()


def _drain(selector: selectors.BaseSelector, streams: Streams) -> None:
    """Read the rest of the pipes, for at most `DRAIN_S`: a daemon may hold one open."""
    for key in list(selector.get_map().values()):
        if key.data[0] == "stdin":
            selector.unregister(key.fileobj)
    deadline = time.monotonic() + DRAIN_S
    while selector.get_map() and time.monotonic() < deadline:
        _move(selector, streams, TICK_S)


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _exit_handle(pid: int) -> int | None:
    """Return a file descriptor that becomes readable at the program's exit (pidfd); None if the
    system has none.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _forget(selector: selectors.BaseSelector, handle: int) -> None:
    with suppress(KeyError):
        selector.unregister(handle)


def _wake(handle: int) -> None:
    with suppress(OSError):
        os.write(handle, b"!")
