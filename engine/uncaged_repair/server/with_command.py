"""Runner for any other test command: the command is the only test, and passes with exit code 0."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .wire import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .outcome import Supervisor

NAME = "command"
FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in (\S+))?|^(\S+\.py):(\d+):', re.MULTILINE)
TAIL = 20_000
SHOWN = 300


class CommandFailed(Exception):
    """The command ended with an exit code other than 0."""


class CommandTest:
    """Test command as a test. argv: run in the current directory."""

    def __init__(self, argv: list[str], root: Path) -> None:
        self.root = str(root)
        self._argv = argv
        self.names = [NAME]

    def run(self, names: list[str], supervisor: Supervisor, quick: bool) -> Iterator[str]:  # noqa: ARG002 - as the other runners
        for name in names:
            supervisor.begin(name)
            ended = subprocess.run(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            outcome, error, places = "passed", None, None
            if ended.returncode:
                output = ended.stdout[-TAIL:].decode(errors="replace")
                outcome, error = (
                    "failed",
                    CommandFailed(f"exit code {ended.returncode}: {output.strip()[-SHOWN:]}"),
                )
                places = found_places(output, self.root)
            supervisor.done(outcome, error, places)
            yield outcome


def with_command(
    argv: list[str],
    root: Path,
    loop: Callable[[CommandTest], None],
    on_collected: Callable[[], None],
    errors: list[Message],
) -> None:
    """Pass *argv* to *loop* as the only test; a program that does not exist is added to
    *errors*.
    """
    on_collected()
    if shutil.which(argv[0]) is None:
        errors.append({"path": argv[0], "message": "there is no such program in the sandbox"})
    else:
        loop(CommandTest(argv, root))


def found_places(output: str, root: str) -> list[tuple[str, int, str]]:
    """Return the places in *root* that tracebacks and messages in *output* name, in order."""
    found = []
    for match in FRAME.finditer(output):
        path, line = match.group(1) or match.group(4), int(match.group(2) or match.group(5))
        inside = os.path.relpath(Path(root, path), root)
        if not inside.startswith(".."):
            found.append((inside, line, match.group(3) or ""))
    return found
