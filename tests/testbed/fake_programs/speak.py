"""Common code of the fake coding programs: records the call, and prints what the test wants.

A fake program reads its script from the file that PLAY names: JSON with what to print, where, and
the exit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def play(name: str, prompt: str, session: str | None) -> dict[str, Any]:
    """Note the call and return the part."""
    part: dict[str, Any] = json.loads(Path(os.environ["PLAY"]).read_text())
    call = {
        "name": name,
        "argv": sys.argv[1:],
        "prompt": prompt,
        "session": session,
        "cwd": str(Path.cwd()),
    }
    with Path(os.environ["CALLS"]).open("a") as calls:
        calls.write(json.dumps(call) + "\n")
    if session is not None and session in part.get("gone", []):
        sys.stderr.write(part["gone_words"] + "\n")
        sys.exit(1)
    for file, text in part.get("files", {}).items():
        Path(file).write_text(text)
    return part


def end(part: dict[str, Any]) -> None:
    """Say the last words and leave as the part says."""
    sys.stdout.write(part.get("stdout", ""))
    sys.stdout.flush()
    sys.stderr.write(part.get("stderr", ""))
    sys.stderr.flush()
    if part.get("flood"):
        while True:
            sys.stdout.write("x" * (1 << 20))
    if part.get("hang"):
        Path(os.environ["UP"]).write_text("up")  # a test may wait for it at the other end of a pipe
        time.sleep(600)
    if part.get("signal"):
        os.kill(os.getpid(), signal.Signals[part["signal"]])
    sys.exit(part.get("exit", 0))


def option(name: str) -> str | None:
    """The word after an option."""
    words = sys.argv[1:]
    return words[words.index(name) + 1] if name in words else None


def line(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
