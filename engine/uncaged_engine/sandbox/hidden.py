"""Refusals for reports: existing things of this machine that a script tried to use and that its
view leaves out.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .bounds import ScriptView, ancestors
from .reach import FACTS
from .watch import ANY_ADDRESS, SOCKET_TABLES, Attempt, Interest, Kind, listening_ports

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc",
    "/sys",
    "/selinux",
    "/dev",
    "/proc",
)
"""Libraries and configuration: programs look there for optional files."""
NAME_SERVICES = (
    "/run/nscd",
    "/run/systemd",
    "/var/lib/sss",
    "/var/db/nscd",
    "/var/cache/nscd",
    "/run/setrans",
)
"""Sockets that the C library asks for names of users and hosts, before it reads the files."""
OWN = ("/tmp", "/dev/shm")  # noqa: S108 - the script's private ones
PROCESSES = "/proc"
NAME_PORT = 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Existing thing of this machine that was refused.

    what: as in `Attempt`. readable: a path that may be read, but not written. system: a
    configuration file of the system, which programs look up without need.
    """

    kind: Kind
    what: str
    readable: bool = False
    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalFinder:
    """Enforcement around one script, to tell refused attempts from others.

    own: its private places. mounted: hidden things do not exist for it (bubblewrap); else only
    their content is refused (Landlock).
    shared_network: the script is in the machine's network. only_listed: a program that is not
    listed does not start, even if readable.
    script_path, machine_path: PATH of the script, and of the caller.
    """

    view: ScriptView
    own: tuple[str, ...]
    mounted: bool
    shared_network: bool
    only_listed: bool
    script_path: str
    machine_path: str

    def interest(self) -> Callable[[Kind, str], Interest]:
        """Return a quick decision how much an attempt at a path matters; in doubt it matters."""
        programs = frozenset(self.script_path.split(":"))
        readable, writable = (
            tuple(f"{path}/" for path in places) for places in (self.view.read, self.view.write)
        )
        own = tuple(f"{path}/" for path in self.own)
        system = tuple(f"{path}/" for path in (*SYSTEM, *NAME_SERVICES))
        libraries = tuple(path for path in system if path != "/etc/")

        def decide(kind: Kind, path: str) -> Interest:
            if kind == "execute" or os.path.dirname(path) in programs:  # noqa: PTH120 - a hot path
                return Interest.HIGH
            if path.startswith("/proc/"):
                return (
                    Interest.HIGH
                    if (_of_the_network if self.mounted else _of_the_machine)(path)
                    else Interest.NONE
                )
            if path.startswith(libraries if kind == "open" else system):
                return Interest.NONE
            if path.startswith(writable if kind == "write" else readable + writable):
                # possibly a link that leads out
                return Interest.LOW if kind == "open" else Interest.NONE
            if path.startswith(own) and kind != "write" and not os.path.lexists(path):
                return Interest.NONE  # no hidden thing has that name
            return (
                Interest.LOW
                if kind == "write" and path.startswith(own + readable)
                else Interest.HIGH
            )

        return decide

    def refusals(self, attempts: Iterable[Attempt]) -> tuple[Refusal, ...]:
        """Return the refused attempts, each thing once, in order."""
        attempts = tuple(attempts)
        made = frozenset(
            self._first_below_own(attempt.what) for attempt in attempts if attempt.kind == "write"
        )
        judged = (
            attempt
            for attempt in attempts
            if self._first_below_own(attempt.what) not in made - {None}
        )
        return tuple(
            dict.fromkeys(refusal for attempt in judged for refusal in self._refusals(attempt))
        )

    def _first_below_own(self, path: str) -> str | None:
        """Return the entry of a private place that contains a path, such as ``/tmp/x``; None if
        there is none, or for the place itself.

        A file that the script made there is its own, even if the machine has one of that name; the
        place hides the machine's others.
        """
        own = next((place for place in self.own if path.startswith(f"{place}/")), None)
        if own is None or self._covers(path, self.view.read) or self._covers(path, self.view.write):
            return None
        entry = path[: f"{path}/".index("/", len(own) + 1)]
        return None if self._leads_on(entry) else entry

    def _leads_on(self, path: str) -> bool:
        """Return whether a directory is an ancestor of something that the script may use."""
        return path == "/" or any(
            _lies_in(str(place), (path,)) for place in (*self.view.read, *self.view.write)
        )

    def _refusals(self, attempt: Attempt) -> Iterator[Refusal]:
        path = attempt.what
        match attempt.kind:
            case "reach":
                if self._is_there(path):
                    yield Refusal(kind="reach", what=path)
            case "execute":
                yield from self._program(path)
            case "look" | "open" | "write" | "space":
                if os.path.dirname(path) in self.script_path.split(":"):  # noqa: PTH120 - as text
                    yield from self._program(path)
                else:
                    yield from self._path(attempt.kind, path)

    def _is_there(self, address: str) -> bool:
        """Return whether an address is one of another machine, or has a listener on this one."""
        if address in (ANY_ADDRESS, SOCKET_TABLES):
            return True
        host, _, port = address.rpartition(":")
        if not host.startswith(("127.", "0.", "[::1]", "[::]", "[::ffff:127.")):
            return True
        return int(port) == NAME_PORT or int(port) in listening_ports("/proc/self/net")

    def _program(self, path: str) -> Iterator[Refusal]:
        name = os.path.basename(path)  # noqa: PTH119 - as text
        real = os.path.realpath(path)
        execute = {str(program) for program in self.view.execute}
        shell = self.view.shell is not None and path in (str(self.view.shell[0]), "/bin/sh")
        if (
            shell
            or path in execute
            or any(directory in execute for directory in ancestors(Path(real)))
            or real in execute
        ):
            yield from self._interpreter(path)
        elif os.path.dirname(path) in self.script_path.split(":"):  # noqa: PTH120 - as text
            declared = {os.path.basename(program) for program in execute}  # noqa: PTH119 - as text
            if name not in declared and shutil.which(name, path=self.machine_path):
                yield Refusal(kind="execute", what=name)
        elif _is_program(path) and (self.only_listed or not self._covers(path, self.view.read)):
            on_path = shutil.which(name, path=self.machine_path)
            yield Refusal(
                kind="execute", what=name if on_path and os.path.realpath(on_path) == real else path
            )

    def _interpreter(self, path: str) -> Iterator[Refusal]:
        """Yield the interpreter of a declared script: the kernel starts it without a visible
        call.
        """
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - as text
                first = file.readline(256)
        except OSError:
            return
        if (
            first.startswith(b"#!")
            and (words := os.fsdecode(first[2:]).split())
            and words[0] != path
        ):
            yield from self._program(words[0])

    def _path(self, kind: Kind, path: str) -> Iterator[Refusal]:
        real = os.path.realpath(path)
        if path == PROCESSES or path.startswith(f"{PROCESSES}/"):
            yield from self._processes(kind, path)
        elif kind in ("look", "space") and not self.mounted:
            return  # names and sizes are public there
        elif self._covers(real, self.view.write) or path in self.own:
            return
        elif kind == "write":
            yield from self._write(path, real)
        elif self._covers(real, self.view.read):
            return
        elif any(_lies_in(place, (*SYSTEM, *NAME_SERVICES)) for place in (path, real)):
            if (
                kind == "open"
                and _lies_in(path, ("/etc",))
                and not _lies_in(path, FACTS)
                and os.path.exists(path)  # noqa: PTH110 - a text, once for each refusal
            ):
                yield Refusal(kind=kind, what=path, system=True)
        elif kind == "look" and self._leads_on(path):
            return  # the script has it, too
        elif os.path.lexists(path):
            yield Refusal(kind=kind, what=real if self._covers(path, self.view.read) else path)

    def _write(self, path: str, real: str) -> Iterator[Refusal]:
        if _lies_in(path, SYSTEM) or _lies_in(real, SYSTEM):
            return
        parent = os.path.dirname(real)  # noqa: PTH120 - as text
        if os.path.isdir(parent) and not os.path.isdir(real):  # noqa: PTH112 - as text
            yield Refusal(kind="write", what=path, readable=self._covers(real, self.view.read))

    def _processes(self, kind: Kind, path: str) -> Iterator[Refusal]:
        """Yield refusals in ``/proc``: bubblewrap shows one of the sandbox alone, Landlock a few
        files of the machine's.
        """
        if kind != "open":
            return
        if _of_the_network(path) and self.mounted:
            if not self.shared_network:
                yield Refusal(kind="reach", what=SOCKET_TABLES)
        elif not self._covers(PROCESSES, self.view.read) and (
            path == PROCESSES or not self.mounted
        ):
            yield Refusal(kind="open", what=PROCESSES)

    @staticmethod
    def _covers(path: str, places: tuple[Path, ...] | tuple[str, ...]) -> bool:
        return _lies_in(path, _by_both_names(places))


@lru_cache(maxsize=64)
def _by_both_names(places: tuple[Path, ...] | tuple[str, ...]) -> tuple[str, ...]:
    """Return places as written, and resolved."""
    return tuple(dict.fromkeys((*map(str, places), *map(os.path.realpath, places))))


def _of_the_network(path: str) -> bool:
    """Return whether a path under ``/proc`` shows the sockets of the script's own network."""
    return path.startswith(
        ("/proc/net/tcp", "/proc/net/udp", "/proc/self/net/tcp", "/proc/self/net/udp")
    )


def _of_the_machine(path: str) -> bool:
    """Return whether a path under ``/proc`` shows more than the calling process and the kernel's
    settings.
    """
    of_listings = (
        "/proc/self/mountinfo",
        "/proc/self/mounts",
        "/proc/self/stat",
        "/proc/self/status",
    )
    return path in of_listings or not _lies_in(path, (*FACTS, "/proc/thread-self", "/proc/sys"))


def _lies_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _is_program(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as text
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)
