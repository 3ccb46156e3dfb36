"""A bubblewrap command line that leaves a process its interpreter, read-only, and nothing else of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .interpreter import HIDDEN_NAMES, Interpreter

ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONCOERCECLOCALE": "0", "TZ": "UTC"}
PYTHON_FLAGS = ("-s", "-P", "-S", "-B")
"""Not -I: it would ignore PYTHONHASHSEED, and the order of sets would differ from run to run."""

ISOLATION = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--cap-drop", "ALL")


def isolation(*, disable_userns: bool) -> list[str]:
    """The options that make the namespaces; nothing of the file system yet."""
    return [*ISOLATION, *(["--disable-userns"] if disable_userns else [])]


def cell_command(
    program: Path,
    interpreter: Interpreter,
    *,
    disable_userns: bool,
    filter_fd: int,
    environment: Mapping[str, str],
    arguments: Sequence[str],
) -> list[str]:
    """The command that starts the interpreter alone in the world.

    Args:
        filter_fd: an inherited descriptor from which bubblewrap reads the seccomp program.
        arguments: what follows the interpreter's path.
    """
    command = [str(program), *isolation(disable_userns=disable_userns)]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    command += mounts(interpreter)
    command += ["--chdir", "/", "--seccomp", str(filter_fd), "--remount-ro", "/", "--"]
    return [*command, str(interpreter.executable), *arguments]


def mounts(interpreter: Interpreter) -> list[str]:
    """Read-only binds at the same absolute paths: a relocated interpreter finds its library by its own place."""
    options: list[str] = []
    for link, target in interpreter.links:
        options += ["--symlink", target, str(link)]
    hidden = []
    for directory in (*interpreter.libraries, *interpreter.stdlib):
        options += ["--ro-bind", str(directory), str(directory)]
        hidden += [directory / name for name in HIDDEN_NAMES if (directory / name).is_dir()]
    for file in interpreter.files:
        options += ["--ro-bind", str(file), str(file)]
    for directory in hidden:
        options += ["--tmpfs", str(directory), "--remount-ro", str(directory)]
    return options
