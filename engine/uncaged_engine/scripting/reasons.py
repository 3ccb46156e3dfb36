"""When a script failed at a wall of its sandbox, its own words are read for what it wanted, and it is told how to declare that."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from .places import Places
from .wish import Limits, declared

_COMMANDS = (
    re.compile(r"^(?:.*line \d+: )?([\w./+-]+): (?:command )?not found$", re.MULTILINE),
    re.compile(r"^.*line \d+: (/[\w./+-]+): (?:No such file or directory|Permission denied|cannot execute.*)$", re.MULTILINE),
    re.compile(r"(?:No such file or directory|Permission denied): '([\w.+-]+)'"),
    re.compile(r"^(?:env|xargs|find): [‘'`]?([\w.+-]+)[’']?: No such file or directory$", re.MULTILINE),
)
_PATH = re.compile(r"(?<![\w/])(/[^\s:'\"‘’]+)")
_LAST_WORD = re.compile(r"([^\s:'\"‘’`]+)['’]?: (?:Read-only file system|Permission denied)$")
_PATH_WORDS = ("No such file or directory", "Permission denied", "Read-only file system", "cannot access", "cannot open")
_WRITING = ("Read-only file system", "cannot create", "cannot touch", "cannot remove")
_NOBODY_THERE = ("Connection refused", "No route to host")
_NETWORK = (
    *("Could not resolve host", "Temporary failure in name resolution", "Name or service not known", "Network is unreachable"),
    *("Could not resolve proxy", "unable to resolve host address", "Couldn't connect to server"),
)


def find_refused(stderr: str, limits: Limits, places: Places, path: str, start: Path) -> list[str]:
    """Return one sentence for each thing that the script seems to have been denied.

    Args:
        path: the caller's PATH, where a command that it lacks may exist. start: the directory that it started in.
    """
    return list(dict.fromkeys((*_commands(stderr, limits, path), *_paths(stderr, places, start), *_network(stderr, limits))))


def _commands(stderr: str, limits: Limits, path: str) -> Iterator[str]:
    for expression in _COMMANDS:
        for word in expression.findall(stderr):
            name = Path(word).name
            if name not in limits.executables and shutil.which(name, path=path):
                yield f"the command {name!r} is not among the policy's executables; {declared('executables', [*limits.executables, name])}"


def _paths(stderr: str, places: Places, start: Path) -> Iterator[str]:
    for line in stderr.splitlines():
        if any(word in line for word in _PATH_WORDS):
            for text in dict.fromkeys((*_PATH.findall(line), *_LAST_WORD.findall(line))):
                path = start / text
                if not _is_program(path):
                    yield from _path(line, text, path, places)


def _path(line: str, text: str, path: Path, places: Places) -> Iterator[str]:
    """What a line that names a path says of it."""
    is_new = not os.path.lexists(path) and os.access(path.parent, os.X_OK)
    if any(word in line for word in _WRITING) or ("Permission denied" in line and is_new):
        if not places.opens(path) and path.parent.is_dir():
            problem = "may only be read" if places.covers(path) else "is outside what the policy allows"
            yield f"the path {text!r} {problem}; {declared('write', [str(path)])}"
    elif places.covers(path):
        if "Permission denied" in line and os.geteuid() == 0:
            yield f"as root, scripts run as a user of their own, and {text!r} is closed to others; start as an ordinary user"
    elif os.path.lexists(path):
        yield f"the path {text!r} is outside what the policy allows; {declared('read', [text])}"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _network(stderr: str, limits: Limits) -> Iterator[str]:
    words = _NETWORK if limits.network else (*_NETWORK, *_NOBODY_THERE)  # where nobody is, every connection is refused
    if "*" not in limits.network and any(word in stderr for word in words):
        what = f"only {', '.join(limits.network)} can be reached" if limits.network else "the network is off"
        yield f"{what}; {declared('network', [*limits.network, 'the.host.it.needs'])}"
