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
_PATH_WORDS = ("No such file or directory", "Permission denied", "Read-only file system", "cannot access", "cannot open")
_WRITING = ("Read-only file system", "cannot create", "cannot touch", "cannot remove")
_NETWORK = (
    *("Could not resolve host", "Temporary failure in name resolution", "Name or service not known", "Network is unreachable"),
    *("Could not resolve proxy", "unable to resolve host address", "Couldn't connect to server"),
)


def find_refused(stderr: str, limits: Limits, places: Places, path: str) -> list[str]:
    """Return one sentence for each thing that the script seems to have been denied.

    Args:
        path: the caller's PATH, where a command that it lacks may exist.
    """
    return list(dict.fromkeys((*_commands(stderr, limits, path), *_paths(stderr, places), *_network(stderr, limits))))


def _commands(stderr: str, limits: Limits, path: str) -> Iterator[str]:
    for expression in _COMMANDS:
        for word in expression.findall(stderr):
            name = Path(word).name
            if name not in limits.executables and shutil.which(name, path=path):
                yield f"the command {name!r} is not among the policy's executables; {declared('executables', [*limits.executables, name])}"


def _paths(stderr: str, places: Places) -> Iterator[str]:
    for line in stderr.splitlines():
        if any(word in line for word in _PATH_WORDS):
            for text in _PATH.findall(line):
                if places.covers(Path(text)):
                    if "Permission denied" in line and os.geteuid() == 0 and not _is_program(text):
                        yield f"as root, scripts run as a user of their own, and {text!r} is closed to others; start as an ordinary user"
                elif os.path.lexists(text) and not _is_program(text):
                    key = "write" if any(word in line for word in _WRITING) else "read"
                    yield f"the path {text!r} is outside what the policy allows; {declared(key, [text])}"


def _is_program(text: str) -> bool:
    return Path(text).is_file() and os.access(text, os.X_OK)


def _network(stderr: str, limits: Limits) -> Iterator[str]:
    if "*" not in limits.network and any(word in stderr for word in _NETWORK):
        what = f"only {', '.join(limits.network)} can be reached" if limits.network else "the network is off"
        yield f"{what}; {declared('network', [*limits.network, 'the.host.it.needs'])}"
