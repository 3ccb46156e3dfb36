"""Exchange of bytes with a child process: input, output within limits, deadline, cancellation."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from uncaged_bundles.records import dataclass, field

from .child import TICK_S, Child, poll_ms

CHUNK_BYTES = 1 << 16
DRAIN_S = 1.0
"""Wait, after the end of a child's tree, for pipes that other processes hold open."""

OnCancel = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Context in which a callback is registered, such as `Cancel.on_request`; any thread may call
it.
"""


def never(_action: Callable[[], None]) -> AbstractContextManager[None]:
    """Register nothing: the child cannot be cancelled."""
    return nullcontext()


@dataclass(slots=True, kw_only=True)
class OutputBuffer:
    """First or last part of an output.

    on_data: called with each chunk, before the limit; an exception from it ends the child.
    truncated: some output was dropped.
    """

    max_bytes: int
    keep_last: bool = False
    on_data: Callable[[bytes], None] | None = None
    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def take(self, chunk: bytes) -> None:
        if self.on_data is not None:
            self.on_data(chunk)
        self.data += chunk
        excess = len(self.data) - self.max_bytes
        if excess > 0:
            self.truncated = True
            if self.keep_last:
                del self.data[:excess]
            else:
                del self.data[self.max_bytes :]


def communicate(
    child: Child,
    *,
    stdin: bytes,
    stdout: OutputBuffer,
    stderr: OutputBuffer,
    deadline: float,
    grace_s: float,
    on_cancel: OnCancel = never,
) -> bool:
    """Write input and read output until the child has exited, then end its tree and read the rest.

    At the deadline or on cancellation the child is terminated, after *grace_s* killed.

    Args:
        deadline: on the monotonic clock.
    Returns:
        Whether the deadline ended the child.
    """
    pipes = _Pipes(child, stdin, stdout, stderr)
    with _Wake() as wake, child.exit_handle() as handle, on_cancel(wake.set):
        pipes.poll.register(wake.read_fd, select.POLLIN)
        if handle is not None:
            pipes.poll.register(handle, select.POLLIN)
        timed_out, kill_at = False, None
        while child.exit_code is None:
            now = time.monotonic()
            if kill_at is None and (wake.is_set or now >= deadline):
                timed_out = not wake.is_set
                child.terminate()
                kill_at = now + grace_s
                pipes.poll.unregister(wake.read_fd)  # it stays readable
            elif kill_at is not None and now >= kill_at:
                child.kill()
            left_s = (deadline if kill_at is None else kill_at) - now
            pipes.move(poll_ms(left_s if left_s > 0 else TICK_S, handle))
        child.kill()  # not reaped yet, so the group is its own
        if kill_at is None:
            pipes.poll.unregister(wake.read_fd)
        if handle is not None:
            pipes.poll.unregister(handle)
        pipes.drain()
    return timed_out


class _Pipes:
    """Ends of a child's three pipes, and what is to be moved through them."""

    def __init__(
        self, child: Child, stdin: bytes, stdout: OutputBuffer, stderr: OutputBuffer
    ) -> None:
        self.poll = select.poll()
        self._input, self._rest = child.stdin, memoryview(stdin)
        self._outputs = {child.stdout.fileno(): stdout, child.stderr.fileno(): stderr}
        for fd in self._outputs:
            self.poll.register(fd, select.POLLIN)
        if stdin:
            os.set_blocking(self._input.fileno(), False)
            self.poll.register(self._input.fileno(), select.POLLOUT)
        else:
            self._input.close()

    def move(self, timeout_ms: float) -> None:
        """Wait for an event and transfer the bytes that are ready."""
        feed = -1 if self._input.closed else self._input.fileno()
        for fd, _ in self.poll.poll(timeout_ms):
            if fd == feed:
                self._feed(fd)
            elif fd in self._outputs:
                chunk = os.read(fd, CHUNK_BYTES)
                if chunk:
                    self._outputs[fd].take(chunk)
                else:
                    self.poll.unregister(fd)
                    del self._outputs[fd]

    def drain(self) -> None:
        """Read outputs to their ends, for at most `DRAIN_S`: another process may hold one open."""
        if not self._input.closed:
            self.poll.unregister(self._input.fileno())
            self._input.close()
        deadline = time.monotonic() + DRAIN_S
        while self._outputs and (left_s := deadline - time.monotonic()) > 0:
            self.move(1000 * left_s)

    def _feed(self, fd: int) -> None:
        try:
            self._rest = self._rest[os.write(fd, self._rest[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the child closed its input
            self._rest = self._rest[:0]
        if not self._rest:
            self.poll.unregister(fd)
            self._input.close()


class _Wake:
    """Flag with a descriptor that becomes readable when it is set, by any thread, also too late."""

    def __init__(self) -> None:
        self.is_set = False
        self._lock = threading.Lock()
        self.read_fd, self._write_fd = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # a late call must not write to another file of this number
            self.is_set = True
            os.close(self.read_fd)
            os.close(self._write_fd)

    def set(self) -> None:
        with self._lock:
            if not self.is_set:
                self.is_set = True
                os.write(self._write_fd, b"!")
