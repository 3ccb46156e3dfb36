"""Command lines of bubblewrap for bundle processes and scripts."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .interpreter import HIDDEN_NAMES, PythonInterpreter

if TYPE_CHECKING:
    from .bounds import ScriptView

ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONCOERCECLOCALE": "0", "TZ": "UTC"}
PYTHON_FLAGS = ("-s", "-P", "-S", "-B")
"""Not -I: it would ignore PYTHONHASHSEED, and the order of sets would differ from run to run."""

SCRATCH = "/tmp/scratch"  # noqa: S108 - in a private file system in memory
"""Working directory of a script without another; empty, and of the same size as /tmp."""

ISOLATION = (
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--clearenv",
    "--cap-drop",
    "ALL",
)


def isolation(*, disable_userns: bool) -> list[str]:
    """Return the options that make the namespaces, without those of the file system."""
    return [*ISOLATION, *(["--disable-userns"] if disable_userns else [])]


def cell_command(
    program: Path,
    interpreter: PythonInterpreter,
    *,
    disable_userns: bool,
    filter_fd: int,
    environment: Mapping[str, str],
    arguments: Sequence[str],
) -> list[str]:
    """Return the command that starts the interpreter, with a read-only file system of its own files
    only.

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


def mounts(interpreter: PythonInterpreter) -> list[str]:
    """Return read-only binds at the same absolute paths: a relocated interpreter finds its library
    relative to itself.
    """
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


def script_command(
    program: Path,
    view: ScriptView,
    *,
    disable_userns: bool,
    network: bool,
    root: bool,
    temporary_bytes: int,
    accounts_fd: int | None,
    info_fd: int,
    places: Mapping[str, str],
    arguments: Sequence[str],
) -> list[str]:
    """Return the command that starts the stage, which becomes the script, in the file system of
    *view*.

    Args:
        root: this process is root: bubblewrap mounts with real rights, since in a user namespace of
            root every user is root outside; the stage drops them.
        temporary_bytes: size of the private directory, which is in memory.
        accounts_fd: an inherited descriptor with the script's /etc/passwd, which is mounted last.
        info_fd: one to which bubblewrap writes its process 1.
        places: as from `places_of`. arguments: the stage's command.
    """
    namespaces = _namespaces(disable_userns=disable_userns, network=network, root=root)
    command = [str(program), *namespaces, "--info-fd", str(info_fd)]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    for link, target in view.links:
        command += ["--symlink", target, str(link)]
    command += _private_file_systems(temporary_bytes, places)
    command += _file_system(view, places)
    if accounts_fd is not None:
        command += ["--perms", "0644", "--ro-bind-data", str(accounts_fd), "/etc/passwd"]
    return [*command, "--chdir", "/", "--remount-ro", "/", "--", *arguments]


def _namespaces(*, disable_userns: bool, network: bool, root: bool) -> list[str]:
    """Return the options for a script's namespaces and capabilities."""
    options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if root:
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        options += ["--unshare-user", *(["--disable-userns"] if disable_userns else [])]
    return options if network else [*options, "--unshare-net"]


def _private_file_systems(temporary_bytes: int, places: Collection[str]) -> list[str]:
    """Return the options for /dev, /proc, and a /tmp and shared memory of limited sizes; without
    the /tmp if the machine's own is granted.
    """
    shared = ["--size", str(temporary_bytes // 4), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - private
    temporary = ["--size", str(temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108 - private
    scratch = ["--perms", "1777", "--dir", SCRATCH]
    device = ["--dev", "/dev", *shared, "--remount-ro", "/dev"]
    granted = "/tmp" in places  # noqa: S108 - the machine's own
    return [*device, "--proc", "/proc", *([] if granted else [*temporary, *scratch])]


def places_of(view: ScriptView, interpreter: PythonInterpreter) -> dict[str, str]:
    """Return what is mounted where, as bubblewrap's options.

    On the way from a directory that may be written to a place in it, each directory is mounted on
    itself: a mount cannot be renamed, so the place keeps its name.
    """
    # not at the top: a bundle's process, which starts with every worker, does not need it
    from .bounds import ancestors

    read = {str(path) for path in view.read}
    places = {str(path): "--bind" for path in view.write} | dict.fromkeys(read, "--ro-bind")
    for path in (
        interpreter.executable,
        *interpreter.libraries,
        *interpreter.stdlib,
        *interpreter.files,
    ):
        if read.isdisjoint((str(path), *ancestors(path), "/")):
            places[str(path)] = "--ro-bind"
    places |= {str(path): "--tmpfs" for path in view.hidden if str(path) not in places}
    return places | {way: "--bind" for place in places for way in _writable_parents(place, places)}


def _writable_parents(place: str, places: Mapping[str, str]) -> list[str]:
    """Return the directories between a place and the nearest mount around it, if that is writable;
    links stay links.
    """
    from .bounds import ancestors

    between: list[str] = []
    for directory in (*ancestors(Path(place)), "/"):
        if directory in places:
            return (
                [way for way in between if not os.path.islink(way)]  # noqa: PTH114 - texts
                if places[directory] == "--bind"
                else []
            )
        between.append(directory)
    return []


def _file_system(view: ScriptView, places: Mapping[str, str]) -> list[str]:
    """Return the options that make the file system, directories before what lies in them."""
    from .bounds import ancestors

    options: list[str] = []
    shell = [] if view.shell is None else [str(view.shell[0])]
    around = {directory for place in (*places, *shell) for directory in ancestors(Path(place))} | {
        str(path) for path in view.listed
    }
    for directory in sorted(around, key=lambda text: text.split("/")):
        # bubblewrap's default closes them to other users, such as the script's
        options += ["--perms", "0755", "--dir", directory]
    for link, target in view.entry_links:
        options += ["--symlink", target, str(link)]
    for place in sorted(places, key=lambda text: text.split("/")):
        options += (
            [places[place], place, place] if places[place] != "--tmpfs" else _cover(place, places)
        )
    options += [
        word
        for path in view.hidden
        if places[str(path)] == "--tmpfs"
        for word in ("--remount-ro", str(path))
    ]
    if view.shell is not None and not _is_mounted(view.shell[0], places):
        options += ["--symlink", str(view.shell[1]), str(view.shell[0])]
    return options


def _is_mounted(place: Path, places: Mapping[str, str]) -> bool:
    """Return whether a directory of the machine is mounted around *place*: it cannot be made there,
    since the machine's own is there.
    """
    from .bounds import ancestors

    around = (places[directory] for directory in (*ancestors(place), "/") if directory in places)
    return next(around, "--tmpfs") != "--tmpfs"


def _cover(directory: str, places: Collection[str]) -> list[str]:
    """Mount an empty directory over another; directories on the way to places below it are open to
    every user.
    """
    from .bounds import ancestors

    within = {
        way for place in places for way in ancestors(Path(place)) if way.startswith(f"{directory}/")
    }
    options = ["--perms", "0755", "--tmpfs", directory]
    for way in sorted(within, key=lambda text: text.split("/")):
        options += ["--perms", "0755", "--dir", way]
    return options
