"""Pseudo-terminal on all three streams of the real command."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Self

CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]|\r")
"""Sequences that move the cursor or change colours."""
WHERE = b"\x1b[6n"
"""Asks the terminal for the place of the cursor."""


def on_terminal(
    words: list[str], environment: dict[str, str], directory: Path, *, typed: bytes = b""
) -> tuple[int, str]:
    """Run the command with a terminal on all three streams."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**environment, "COLUMNS": "80", "LINES": "24"},
        cwd=directory,
        start_new_session=True,
    )
    os.close(follower)
    os.write(leader, typed)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux says EIO when the last process has closed the terminal
            break
        if not part:
            break
        seen += part
    os.close(leader)
    return process.wait(timeout=60), seen.decode()


class InteractiveCommand:
    """The command on a terminal, driven by what it prints."""

    def __init__(self, words: list[str], environment: dict[str, str], directory: Path) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            # Ctrl-C reaches the process of which this is the controlling terminal
            ["setsid", "--ctty", sys.executable, "-m", "uncaged_cli", *words],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment,
            cwd=directory,
        )
        os.close(follower)
        self.seen = ""
        """All that was printed, without control sequences."""
        self._expected = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self._leader, text.encode())

    def press_until(self, keys: str, text: str) -> None:
        """Press keys again and again until *text* appears: a terminal that is changing its mode, or
        a program between two reads, may lose a key.
        """
        for _ in range(30):
            self.type(keys)
            try:
                self.expect(text, timeout_s=2.0)
            except AssertionError:
                continue
            return
        raise AssertionError(f"no {text!r} in {self.seen[self._expected :]!r}")

    def expect(self, text: str, timeout_s: float = 60.0) -> None:
        """Read until *text* appears after what was expected before."""
        until = time.monotonic() + timeout_s
        while (place := self.seen.find(text, self._expected)) < 0:
            if not self._read(until):
                raise AssertionError(f"no {text!r} in {self.seen[self._expected :]!r}")
        self._expected = place + len(text)

    def end(self, timeout_s: float = 60.0) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + timeout_s
        while self._read(until):
            pass
        return self.process.wait(timeout=timeout_s)

    def _read(self, until: float) -> bool:
        """Read what is printed next, and answer questions about the cursor; False at the end."""
        left = max(0.0, until - time.monotonic())
        if not select.select([self._leader], [], [], left)[0]:
            return False
        try:
            part = os.read(self._leader, 65536)
        except OSError:  # the last process has closed the terminal
            return False
        if WHERE in part:
            self.type("\x1b[1;1R")
        self.seen += CONTROL.sub("", part.decode("utf-8", "replace"))
        return bool(part)
