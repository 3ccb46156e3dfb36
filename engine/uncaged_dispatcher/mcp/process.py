"""Channel to an MCP server that is a program: one message a line on its standard input and output.

The process runs as the person, outside of the sandbox, and ends with its tree when the channel is
closed.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.processes import Child

from .client import MAX_MESSAGE_BYTES, McpCancelled, McpProblem, Redact

CHUNK_BYTES = 1 << 16
MAX_TOTAL_BYTES = 4 * MAX_MESSAGE_BYTES
KEPT_ERROR_BYTES = 4_096
SHOWN_CHARACTERS = 300
PATIENCE_S = 0.5
GRACE_S = 0.5


class ProcessChannel:
    """Child process with a deadline for the whole exchange; its ``with`` block ends the process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        deadline: float,
        redact: Redact,
    ) -> None:
        """Start the program.

        Args:
            environment: all of it. deadline: on the monotonic clock.
        Raises:
            EnvironmentLacks: it cannot be started.
        """
        self._name = name
        self._deadline = deadline
        self._redact = redact
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._output = b""
        self._errors = b""
        self._received = 0
        self._lock = threading.Lock()
        self._is_cancelled = self._is_closed = False
        self._wake_read, self._wake_write = os.pipe()
        try:
            program = _found(command[0], environment)
            self._child = Child.start(
                [program, *command[1:]], directory=directory, environment=environment
            )
        except (OSError, ValueError) as exc:
            self._close_wake()
            raise EnvironmentLacks(
                f"the MCP server {name!r} cannot be started: {command[0]!r}: {_reason(exc)}",
                remedy=f"install it, or correct mcpServers.{name} in config.yaml",
                begun=False,
            ) from None
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            os.set_blocking(pipe.fileno(), False)
        self._readable = [self._child.stdout.fileno(), self._child.stderr.fileno()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # a server ends by itself when its input is closed
        self._child.stdin.close()
        self._child.end(patience_s=PATIENCE_S if error is None else 0.0, grace_s=GRACE_S)
        self._close_wake()

    def cancel(self) -> None:
        """End the exchange; any thread may call it, also after its end."""
        with self._lock:
            self._is_cancelled = True
            if not self._is_closed:
                os.write(self._wake_write, b"!")

    def agree(self, version: str) -> None:
        del version  # messages on pipes do not carry it

    def send(self, message: Mapping[str, object]) -> None:
        self._output += json.dumps(message).encode() + b"\n"
        while self._output:
            self._move()

    def receive(self) -> bytes:
        while not self._lines:
            self._move()
        return self._lines.popleft()

    def _move(self) -> None:
        """Wait for the pipes and transfer the bytes that are ready."""
        if self._is_cancelled:
            raise McpCancelled
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise McpProblem(
                f"the MCP server {self._name!r} did not answer in time{self._last_words()}",
                kind="timeout",
            )
        if self._child.stdout.fileno() not in self._readable:
            raise McpProblem(
                f"the MCP server {self._name!r} ended without an answer{self._last_words()}"
            )
        feed = self._child.stdin.fileno()
        poll = select.poll()
        for fd in (*self._readable, self._wake_read):
            poll.register(fd, select.POLLIN)
        if self._output:
            poll.register(feed, select.POLLOUT)
        for fd, _event in poll.poll(left_s * 1000):
            if fd == feed:
                self._feed(fd)
            elif fd in self._readable:
                self._read(fd)

    def _feed(self, fd: int) -> None:
        try:
            self._output = self._output[os.write(fd, self._output[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # its last words are still to be read
            self._output = b""

    def _read(self, fd: int) -> None:
        chunk = os.read(fd, CHUNK_BYTES)
        if not chunk:
            self._readable.remove(fd)
        elif fd == self._child.stderr.fileno():
            self._errors = (self._errors + chunk)[-KEPT_ERROR_BYTES:]
        else:
            self._received += len(chunk)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines += [line for line in lines if line.strip()]
            if len(self._rest) > MAX_MESSAGE_BYTES or self._received > MAX_TOTAL_BYTES:
                raise McpProblem(
                    f"the MCP server {self._name!r} sends more than {MAX_MESSAGE_BYTES >> 20} MiB",
                    kind="too-large",
                )

    def _last_words(self) -> str:
        """Return the end of its error output, for a message."""
        text = str(self._redact(clean_line(self._errors.decode("utf-8", "replace"))))
        return f": {text[-SHOWN_CHARACTERS:]}" if text else ""

    def _close_wake(self) -> None:
        # a late cancel must not write to another file of this number
        with self._lock:
            self._is_closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)


def _found(program: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program by the caller's PATH, not by that of this process."""
    import shutil

    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError("there is no such program on PATH")
    return found


def _reason(exc: OSError | ValueError) -> str:
    return exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
