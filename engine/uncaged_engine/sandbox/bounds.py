"""Bounds of a script, and the paths that it reads and writes, computed once for both mechanisms."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM_DIRECTORIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
LIBRARY_DIRECTORIES = (
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/share",
    "/nix/store",
)
PROGRAM_LINKS = ("/bin", "/sbin")
"""Links into ``/usr`` on most distributions; as directories they hold declared programs only."""
SYSTEM_FILES = (
    *(
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/alternatives",
        "/etc/localtime",
        "/etc/nsswitch.conf",
    ),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/mime.types", "/etc/gitconfig"),
)
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/services",
    "/etc/protocols",
    "/etc/gai.conf",
    "/run/systemd/resolve/stub-resolv.conf",
)
MAX_LINKS = 40
"""The kernel's own limit."""
Identity = tuple[int, int]
"""Device and inode of a file."""
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptBounds:
    """Bounds of a script.

    read, write: files and directories. executables: allowed programs; None: those of the system and
    the script's own.
    shell: the program at ``/bin/sh`` where executables are listed; None: no such program, unless it
    is one of them.
    hidden: directories that are excluded from those for reading and writing. identities: the
    expected identity of some of these paths.
    timeout_s: for the whole run. scratch_bytes: in the private directory. cpu_s, memory_bytes,
    file_bytes: for each process.
    processes: at once. output_bytes: kept of each stream.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    executables: tuple[Path, ...] | None = None
    shell: Path | None = None
    hidden: tuple[Path, ...] = ()
    identities: Mapping[Path, Identity] = field(default_factory=dict)
    network: bool = False
    timeout_s: float = 60.0
    cpu_s: int | None = None
    memory_bytes: int = 2 << 30
    processes: int = 64
    file_bytes: int = 256 << 20
    scratch_bytes: int = 256 << 20
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptView:
    """File system of a script. links: symbolic links in the root directory, with their targets.

    hidden: directories that are covered. listed: directories that are shown by their entries.
    entry_links: links among those entries.
    shell: the place of ``/bin/sh``, links resolved, and the program that it leads to; None: the
    place is empty or as on the machine.
    """

    read: tuple[Path, ...]
    write: tuple[Path, ...]
    execute: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]
    shell: tuple[Path, Path] | None = None
    hidden: tuple[Path, ...] = ()
    listed: tuple[Path, ...] = ()
    entry_links: tuple[tuple[Path, str], ...] = ()


def view_of(bounds: ScriptBounds, program: Path) -> ScriptView:
    """Resolve bounds to existing paths, without those that another one covers.

    Paths are compared as texts: with objects this took as long as all else before the start.
    """
    programs = list(dict.fromkeys((program, *(bounds.executables or ()))))
    prefixes = [prefix for item in programs for prefix in python_prefixes(item)]
    system = [*(SYSTEM_DIRECTORIES if bounds.executables is None else LIBRARY_DIRECTORIES)]
    execute: list[Path | str] = [*programs, *_loaders()]
    if bounds.executables is None:
        execute = [*SYSTEM_DIRECTORIES, *bounds.read, *bounds.write, *prefixes, program]
    system += [*SYSTEM_FILES, *(NETWORK_FILES if bounds.network else ())]
    links = _links((*system, *PROGRAM_LINKS))
    real = [place for item in programs for place in link_chain(item)]
    shown = (name for name in system if name not in links)
    read = [
        text
        for text in map(str, (*shown, *bounds.read, *prefixes, *programs, *real))
        if text != "/" and os.path.dirname(text) not in links  # noqa: PTH120 - a text
    ]
    write = _uncovered(_existing(bounds.write), ())
    return ScriptView(
        read=_uncovered(_existing(read), write),
        write=write,
        execute=_uncovered(_existing([*execute, *real]), ()),
        links=tuple((Path(name), target) for name, target in links.items()),
        shell=_shell(bounds, {*programs, *real}),
        hidden=tuple(
            path
            for path in bounds.hidden
            if any(place in path.parents for place in (*bounds.read, *bounds.write))
        ),
    )


def _links(names: Iterable[str]) -> dict[str, str]:
    """Return the targets of those names in the root directory that are symbolic links."""
    found: dict[str, str] = {}
    for name in names:
        if name.count("/") == 1:
            with suppress(OSError):
                found[name] = os.readlink(name)  # noqa: PTH115 - a text
    return found


def _shell(bounds: ScriptBounds, programs: Collection[Path]) -> tuple[Path, Path] | None:
    """Return the path of ``/bin/sh`` and the declared program that it is."""
    place = Path(os.path.realpath("/bin"), "sh")
    if bounds.executables is None or bounds.shell is None or place in programs:
        return None
    return place, bounds.shell


def find_program(name: str, environment: Mapping[str, str], directory: Path) -> Path | None:
    """Return the program for *name*: a path as it is (relative to *directory*), else the first on
    PATH; None if there is none.
    """
    if "/" in name:
        path = directory / name
        return Path(os.path.abspath(path)) if path.is_file() else None  # noqa: PTH100 - links stay: a venv is known by its own path
    found = shutil.which(name, path=environment.get("PATH", DEFAULT_PATH))
    return None if found is None else Path(os.path.abspath(found))  # noqa: PTH100 - the same


def link_chain(program: Path) -> list[Path]:
    """Return each place that a program's symbolic links lead over, and where they end: a venv's
    Python may take two steps.

    Each place is named with the links of its directory resolved, too: ``/bin/sh`` lies in
    ``/usr/bin`` on most distributions.
    """
    places = [program]
    while places[-1].is_symlink() and len(places) < MAX_LINKS:
        places.append(places[-1].parent / places[-1].readlink())
    found = [
        *places[1:],
        *(Path(os.path.realpath(place.parent), place.name) for place in places),
        Path(os.path.realpath(program)),
    ]
    return list(dict.fromkeys(found))


def python_prefixes(program: Path) -> list[Path]:
    """Return the library directories of a Python outside the system; of a virtual environment also
    those of its base interpreter.
    """
    found = []
    home = program.parent.parent
    settings = home / "pyvenv.cfg"
    if settings.is_file():
        found.append(home)
    for path in {program, Path(os.path.realpath(program)), *_homes(settings)}:
        prefix = path.parent.parent
        if str(prefix) not in ("/", "/usr") and any(prefix.glob("lib*/python3*/os.py")):
            found.append(prefix)
    return found


def ancestors(path: Path) -> Iterator[str]:
    """Return the ancestors of an absolute path, the nearest first, without the root directory."""
    return _ancestors(str(path))


def _ancestors(text: str) -> Iterator[str]:
    while (end := text.rfind("/")) > 0:
        text = text[:end]
        yield text


def _homes(settings: Path) -> list[Path]:
    """Yield the home of a virtual environment, as the path of a program in it."""
    try:
        lines = settings.read_text().splitlines()
    except OSError:
        return []
    pairs = (line.partition("=") for line in lines)
    return [
        Path(os.path.realpath(Path(value.strip(), "python3")))
        for key, _, value in pairs
        if key.strip() == "home"
    ]


@functools.cache
def _loaders() -> tuple[Path, ...]:
    return tuple(
        path
        for name in ("/lib64", "/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
        for path in Path(name).glob("ld-*")
    )


def _existing(paths: Iterable[Path | str]) -> list[str]:
    found = (os.path.abspath(path) for path in paths if os.path.exists(path))  # noqa: PTH100, PTH110 - a link's own place is what programs use
    return list(dict.fromkeys(found))


def _uncovered(paths: Iterable[str], writable: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths sorted, without duplicates and without those inside of another, unless a
    writable one lies between.
    """
    walls = {str(path) for path in writable}
    kept: set[str] = set()
    found = []
    for path in sorted(set(paths) - walls, key=lambda text: text.split("/")):
        nearest = next(
            (place for place in (*_ancestors(path), "/") if place in kept or place in walls), None
        )
        if nearest is None or nearest in walls:
            kept.add(path)
            found.append(Path(path))
    return tuple(found)
