"""Pseudo-terminal on all three streams of the real command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path


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
