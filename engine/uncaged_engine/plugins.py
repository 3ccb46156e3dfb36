"""Entry points by group and name, and the objects behind them.

This distribution's own are read from its metadata file (1 ms); others are searched for only when a
name is not ours (35 ms).
"""

from __future__ import annotations

import functools
import os
import sys
from _blake2 import blake2b
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError
from uncaged_bundles.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "uncaged-workflow"
EFFECTS = "uncaged_workflow.effects"
PREPARATIONS = "uncaged_workflow.preparations"
AGENTS = "uncaged_workflow.agents"
ROUTES = "uncaged_workflow.routes"
OBSERVERS = "uncaged_workflow.observers"
STORES = "uncaged_workflow.stores"
VERBS = "uncaged_workflow.verbs"


def find(name: str, *, group: str) -> object:
    """Return the object that is registered as *name*.

    Raises:
        NotFoundError: nothing is; the message has the nearest names. EnvironmentLacks: what another
            distribution registered is broken.
    """
    reference = ours(group).get(name)
    if reference is not None:
        module, _, attribute = reference.partition(":")
        found: object = getattr(import_module(module), attribute)
        return found
    points = points_of(group)
    if name in points:
        return loaded(points[name])
    from difflib import get_close_matches

    known = names(group=group)
    near = get_close_matches(name, known, n=3) or known
    raise NotFoundError(
        f"nothing is registered as {name!r} in {group} (known: {', '.join(near)}); check the name or install what provides it"
    )


def is_known(name: str, *, group: str) -> bool:
    """Whether *name* is registered, here or by another distribution."""
    return name in ours(group) or name in points_of(group)


def names(*, group: str) -> tuple[str, ...]:
    """Return every registered name, those of other distributions included."""
    return tuple(sorted({*ours(group), *points_of(group)}))


def installation() -> tuple[str, str]:
    """Return digests of the module path and of the state of its directories. The second is another
    one after a package was installed or removed.
    """
    directories = _module_path()
    return _digest(directories), digest_of_state(directories)


def digest_of_state(directories: Iterable[str]) -> str:
    """Return a digest that is another one after a file of one of the directories was added,
    replaced or removed.
    """
    return _digest([__version__, *map(_seen, directories)])


def distribution_of(name: str, *, group: str) -> str:
    """Return the distribution that registers *name*."""
    point = None if name in ours(group) else points_of(group).get(name)
    return OURS if point is None or point.dist is None else point.dist.name


def loaded(point: EntryPoint) -> object:
    """Return the object behind an entry of another distribution, whose faults are not ours."""
    try:
        found: object = point.load()
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as exc:
        whose = f" of the distribution {point.dist.name!r}" if point.dist is not None else ""
        raise EnvironmentLacks(
            f"{point.name!r}{whose} cannot be loaded: {type(exc).__name__} in {point.value}: {exc}",
            remedy="repair or uninstall it",
        ) from exc
    return found


@functools.cache
def ours(group: str) -> Mapping[str, str]:
    """Return what this distribution registers: name to ``module:attribute``, without the packages
    that are not installed.
    """
    return {
        name: value
        for name, value in _metadata().get(group, {}).items()
        if _is_installed(value.partition(".")[0].partition(":")[0])
    }


@functools.cache
def points_of(group: str) -> Mapping[str, EntryPoint]:
    """Return what other distributions register; ours are not among them."""
    from importlib.metadata import entry_points

    found = entry_points(group=group)
    return {point.name: point for point in found if point.dist is None or point.dist.name != OURS}


def _module_path() -> list[str]:
    """Where packages may be installed: the module path without the directory that the interpreter
    puts first for a program, its script's or the working directory. It differs between the command,
    `python -m` and a worker of one installation.
    """
    others = {"", os.path.dirname(os.path.realpath(sys.argv[0]))}  # noqa: PTH120 - at every start
    with suppress(OSError):  # the working directory was removed
        others.add(os.getcwd())  # noqa: PTH109 - at every start
    return [directory for directory in dict.fromkeys(sys.path) if directory not in others]


def _seen(directory: str) -> str:
    """What changes about a directory when a package is installed in it or removed from it."""
    try:
        found = os.stat(directory)  # noqa: PTH116 - a plain text of the module path, at every start
    except OSError:
        return f"{directory} -"
    return f"{directory} {found.st_dev} {found.st_ino} {found.st_mtime_ns}"


def _digest(texts: Iterable[str]) -> str:
    return blake2b("\0".join(texts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


@functools.cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@functools.cache
def _metadata() -> Mapping[str, Mapping[str, str]]:
    """Return the entry points of this distribution by group, from the first metadata directory on
    the module path.
    """
    groups: dict[str, dict[str, str]] = {}
    group = ""
    for line in _metadata_text().splitlines():
        if line.startswith("["):
            group = line.strip("[] ")
        elif "=" in line:
            name, _, value = line.partition("=")
            groups.setdefault(group, {})[name.strip()] = value.strip()
    return groups


def _metadata_text() -> str:
    start = f"{OURS.replace('-', '_')}-"
    for directory in sys.path:
        try:
            entries = os.listdir(directory or ".")  # noqa: PTH208 - only names, of a directory with hundreds of them
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(start) and entry.endswith(".dist-info"):
                return (Path(directory) / entry / "entry_points.txt").read_text("utf-8")
    from importlib.metadata import distribution

    return distribution(OURS).read_text("entry_points.txt") or ""
