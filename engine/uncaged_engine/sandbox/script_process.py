"""Running script: a process tree with three pipes that ends as a whole."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from .hidden import Refusal

KILL_TIMEOUT_S = 10.0
Refusals = Callable[[], tuple[Refusal, ...]]
WATCH_S = 0.25


class Quota:
    """Size limit of a private directory on disk."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._exceeded = False

    def watch(self, directory: Path, done: threading.Event, interrupt: Callable[[], None]) -> None:
        while not done.wait(WATCH_S):
            if used_bytes(directory) > self._most_bytes:
                self._exceeded = True
                interrupt()
                return

    def message(self) -> bytes:
        """Return the message that is appended to the script's standard error."""
        if not self._exceeded:
            return b""
        return b"\nthe private directory held more than %d MiB; the script was ended\n" % (
            self._most_bytes >> 20
        )


def used_bytes(directory: Path) -> int:
    """Return the size of a tree on disk, with removed files that visible processes still hold
    open.
    """
    total = 0
    for where, names, files in os.walk(directory):
        for name in (*names, *files):
            with suppress(OSError):
                total += Path(where, name).lstat().st_blocks * 512
    removed: dict[tuple[int, int], int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for entry in (process / "fd").iterdir():
                with suppress(OSError):
                    text = str(entry.readlink())
                    if text.startswith(f"{directory}/") and text.endswith(" (deleted)"):
                        found = entry.stat()
                        removed[found.st_dev, found.st_ino] = found.st_blocks * 512
    return total + sum(removed.values())


class ScriptProcess:
    """Running script; its ``with`` block, or `kill`, ends the whole process tree.

    refused: the script's refusals on this machine; complete after the kill, empty if it was not
    watched.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        tree_fd: int | None,
        private: Path | None,
        refusals: Refusals | None = None,
    ) -> None:
        """Take ownership of a started script.

        Args:
            process: bubblewrap, or the supervisor.
            tree_fd: of bubblewrap's process 1, whose end ends all others; None: the supervisor ends
                them.
            private: a directory that is removed at the end.
            refusals: ends the watch, after the last process, and returns the refusals.
        """
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a script needs three pipes")
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr
        self._process = process
        self._tree_fd = tree_fd
        self._private = private
        self._refusals = refusals
        self.refused: tuple[Refusal, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id of the head of the tree: bubblewrap, or the supervisor."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while the script runs."""
        code = self._process.poll()
        return None if code is None else self._ended(code)

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the script's end, end its remaining processes, and return its exit code; 128 and
        more for a signal.

        Raises:
            subprocess.TimeoutExpired: the script still runs.
        """
        return self._ended(self._process.wait(timeout_s))

    def interrupt(self) -> None:
        """Make the script end soon, from any thread; readers of its output and waiters see that,
        and must still call `kill`.
        """
        self._process.send_signal(signal.SIGTERM)

    @contextmanager
    def within(self, scratch_bytes: int) -> Iterator[Quota]:
        """Watch the private directory's size inside this block, and interrupt the script above the
        limit; bubblewrap's has a fixed size.
        """
        quota = Quota(scratch_bytes)
        if self._private is None:
            yield quota
            return
        done = threading.Event()
        watch = threading.Thread(
            target=quota.watch, args=(self._private, done, self.interrupt), daemon=True
        )
        watch.start()
        try:
            yield quota
        finally:
            done.set()
            watch.join()

    def kill(self) -> None:
        """End the whole tree, reap it and close the pipes; idempotent."""
        if self._process.poll() is None:
            if self._tree_fd is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._tree_fd, signal.SIGKILL)
            else:
                # the supervisor ends the rest; it cannot if it is killed itself
                self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_TIMEOUT_S)
            self._process.kill()
            self._process.wait()
        self._ended(self._process.returncode)
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(OSError):  # unwritten input has no reader
                pipe.close()
        if self._refusals is not None:
            refusals, self._refusals = self._refusals, None
            self.refused = refusals()

    def _ended(self, code: int) -> int:
        """Wait for the end of the tree, too: bubblewrap returns before its process 1 has ended."""
        if self._tree_fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._tree_fd, signal.SIGKILL)
            poll = select.poll()
            poll.register(self._tree_fd, select.POLLIN)
            poll.poll(KILL_TIMEOUT_S * 1000)
            os.close(self._tree_fd)
            self._tree_fd = None
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None
        return 128 - code if code < 0 else code
