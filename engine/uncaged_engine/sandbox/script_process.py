"""Running script: a process tree with three pipes that ends as a whole."""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..processes.child import Child
from .hidden import Refusal

KILL_TIMEOUT_S = 10.0
WATCH_S = 0.25

Refusals = Callable[[], tuple[Refusal, ...]]
"""Function that ends the watch of a script and returns its refusals."""


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


class ScriptProcess(Child):
    """Running script under its head, bubblewrap or the supervisor; its ``with`` block ends the
    process tree. The exit code of a signal is 128 and more.

    tree_fd: of bubblewrap's process 1, whose end ends all others; None: the supervisor ends them.
    private: a directory that is removed at the end. watch: called after the last process.
    refused: the script's refusals on this machine; complete after the end, empty without a watch.
    """

    tree_fd: int | None = None
    private: Path | None = None
    watch: Refusals | None = None
    refused: tuple[Refusal, ...] = ()

    def terminate(self) -> None:
        """Make the script end soon: its head ends the rest."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process tree and wait for that: bubblewrap exits before its process 1."""
        if self.tree_fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.tree_fd, signal.SIGKILL)
            poll = select.poll()
            poll.register(self.tree_fd, select.POLLIN)
            poll.poll(KILL_TIMEOUT_S * 1000)
        elif not self.ends_within(0):
            self.terminate()  # the supervisor cannot end the rest if it is killed itself
        self.ends_within(KILL_TIMEOUT_S)
        # what did not end; and if another process killed the supervisor, the rest of its group
        self.signal_group(signal.SIGKILL)

    def end(self, *, patience_s: float = 0.0, grace_s: float | None = None) -> int:
        """End the tree as `Child.end` does, remove the private directory, and end the watch."""
        code = super().end(patience_s=patience_s, grace_s=grace_s)
        if self.tree_fd is not None:
            os.close(self.tree_fd)
            self.tree_fd = None
        if self.private is not None:
            shutil.rmtree(self.private, ignore_errors=True)
            self.private = None
        if self.watch is not None:
            watch, self.watch = self.watch, None
            self.refused = watch()
        return code

    def _exit_code(self, code: int) -> int:
        return 128 - code if code < 0 else code

    @contextmanager
    def within(self, scratch_bytes: int) -> Iterator[Quota]:
        """Watch the private directory's size inside this block, and end the script above the
        limit; bubblewrap's has a fixed size.
        """
        quota = Quota(scratch_bytes)
        if self.private is None:
            yield quota
            return
        done = threading.Event()
        watch = threading.Thread(
            target=quota.watch, args=(self.private, done, self.terminate), daemon=True
        )
        watch.start()
        try:
            yield quota
        finally:
            done.set()
            watch.join()
