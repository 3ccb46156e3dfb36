"""Choice of the sandbox by trial on this machine; without one that works, nothing runs."""

from __future__ import annotations

import functools
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from uncaged_bundles.errors import SandboxUnavailable, UsageError
from uncaged_bundles.records import dataclass

from .bubblewrap import isolation
from .installed import PACKAGE, SYSTEM, Program, advice, programs
from .interpreter import HIDDEN_NAMES, PythonInterpreter
from .landlock import (
    ALL_NETWORK_RIGHTS,
    ALL_SCOPES,
    FILE_RIGHTS_OF_ABI,
    NETWORK_FROM_ABI,
    READ_DIRECTORY,
    READ_FILE,
    SCOPES_FROM_ABI,
)
from .syscalls import audit_arch, number_of

BUNDLE_ABI = 1
"""Landlock closes a bundle's files; the filter refuses all that later versions add: moving,
truncating, sockets, devices, signals.
"""
SCRIPT_ABI = 6
"""A script may do all that within its bounds, so Landlock has to control it; signals came with this
version.
"""
INSTALL = f"install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; or pip install {PACKAGE})"
_LANDLOCK_CREATE_RULESET_VERSION = 1
_PROBE_TIMEOUT_S = 10
_TRYING = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Sandbox that a trial showed to work here, or that is assumed to work.

    program: bubblewrap's path (None for Landlock), and its installer. disable_userns: this
    bubblewrap can forbid nested user
    namespaces. landlock_abi: the kernel's (0 for bubblewrap).
    """

    name: Literal["bubblewrap", "landlock"]
    machine: str
    program: Path | None = None
    origin: str = SYSTEM
    disable_userns: bool = False
    landlock_abi: int = 0

    @property
    def holds_scripts(self) -> bool:
        """Return whether the mechanism can run scripts; any can run bundles."""
        return self.name == "bubblewrap" or self.landlock_abi >= SCRIPT_ABI


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Reason why bubblewrap is not used. remedy: the change that would make it work."""

    reason: str
    remedy: str


def choose(prefer: str = "auto", *, scripts: bool = False, owners: bool = False) -> Mechanism:
    """Return the sandbox to use: bubblewrap if it works, else Landlock.

    Args:
        prefer: ``auto``, ``bubblewrap`` or ``landlock``; the latter two allow no other.
        scripts: require a mechanism for scripts, too; Landlock is one from version 6 on.
        owners: prefer one that shows owners of the machine's processes. In the user namespace of an
            ordinary user's bubblewrap, the kernel shows all others as one user; so Landlock comes
            first there, if *prefer* allows it.
    Raises:
        SandboxUnavailable: no allowed mechanism works here; the message has the reason and what to
            install.
        UsageError: unknown preference.
    """
    if prefer not in ("auto", "bubblewrap", "landlock"):
        raise UsageError(f"sandbox: {prefer!r} is none of 'auto', 'bubblewrap', 'landlock'")
    if owners and prefer == "auto" and os.geteuid() != 0:
        with suppress(SandboxUnavailable):
            return _chosen("landlock", scripts)
    return _chosen(prefer, scripts)


def try_early() -> None:
    """Begin the trial of the default preference while the caller does something else; `choose`
    waits for it.
    """
    threading.Thread(target=_try_default, name="sandbox trial", daemon=True).start()


def _try_default() -> None:
    with suppress(SandboxUnavailable):  # `choose` reports it
        _chosen("auto", scripts=False)


def assume(prefer: str = "auto") -> Mechanism | None:
    """Return the sandbox that `choose` would try first, without a trial, for a caller that starts
    it at once and checks the result.

    Returns:
        None if the choice needs a look at the machine.
    """
    program = None if prefer == "landlock" else next(programs(), None)
    if program is None:
        return None
    return Mechanism(
        name="bubblewrap",
        machine=os.uname().machine,
        program=program.path,
        origin=program.origin,
        disable_userns=True,
    )


def _chosen(prefer: str, scripts: bool) -> Mechanism:
    with _TRYING:  # a second trial would take as long as the first
        return _choose(prefer, scripts)


@functools.cache
def _choose(prefer: str, scripts: bool) -> Mechanism:
    machine = os.uname().machine
    audit_arch(machine)
    bubblewrap = None
    if prefer != "landlock":
        tried = try_bubblewrap(programs(), machine)
        if isinstance(tried, Mechanism):
            return tried
        bubblewrap = tried
    landlock = None
    if prefer != "bubblewrap":
        landlock = Mechanism(name="landlock", machine=machine, landlock_abi=landlock_abi(machine))
    return settle(bubblewrap, landlock, scripts=scripts)


def settle(bubblewrap: Unusable | None, landlock: Mechanism | None, *, scripts: bool) -> Mechanism:
    """Return Landlock's mechanism if its version is enough.

    Args:
        bubblewrap, landlock: None if the preference excludes it.
    Raises:
        SandboxUnavailable: the version is too low, or Landlock is excluded.
    """
    least, linux = (SCRIPT_ABI, "6.12") if scripts else (BUNDLE_ABI, "5.13")
    if landlock is not None and landlock.landlock_abi >= least:
        return landlock
    reasons = [] if bubblewrap is None else [bubblewrap.reason]
    if landlock is not None:
        reasons.append(
            f"Landlock: the kernel offers version {landlock.landlock_abi}, {least} is needed (Linux {linux})"
        )
    if len(reasons) > 1:
        subject = (
            "no sandbox on this machine holds scripts"
            if scripts
            else "no sandbox holds on this machine, so only trusted bundles run"
        )
        reasons.insert(0, subject)
    raise SandboxUnavailable(
        ". ".join(reasons), remedy=INSTALL if bubblewrap is None else bubblewrap.remedy
    )


def try_bubblewrap(candidates: Iterable[Program], machine: str) -> Mechanism | Unusable:
    """Start each program once; return the first that makes a sandbox, or the reason why none
    does.
    """
    reasons: list[str] = []
    remedy = INSTALL
    for program in candidates:
        complaint = ""
        for disable_userns in (True, False):
            complaint = _complaint([str(program.path), *isolation(disable_userns=disable_userns)])
            if not complaint:
                return Mechanism(
                    name="bubblewrap",
                    machine=machine,
                    program=program.path,
                    origin=program.origin,
                    disable_userns=disable_userns,
                )
        if not reasons:
            remedy = advice(program.path)
        reasons.append(f"{program.path} makes no sandbox here ({complaint})")
    return Unusable(
        reason=f"bubblewrap: {', and '.join(reasons) or 'not installed'}", remedy=remedy
    )


def _complaint(command: list[str]) -> str:
    """Return the error output of a trial of bubblewrap; nothing if it works."""
    try:
        tried = subprocess.run(
            [*command, "--ro-bind", "/", "/", "--", "/bin/true"],
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            env={},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    if tried.returncode == 0:
        return ""
    return (
        tried.stderr.decode(errors="replace").strip()[:300]
        or f"it ended with status {tried.returncode}"
    )


def landlock_abi(machine: str) -> int:
    """Return the kernel's Landlock version; 0 without Landlock."""
    import ctypes

    number = number_of("landlock_create_ruleset", machine) or -1
    version = ctypes.CDLL(None).syscall(
        ctypes.c_long(number),
        None,
        ctypes.c_size_t(0),
        ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION),
    )
    return max(0, int(version))


@functools.cache
def known_landlock_abi(machine: str) -> int:
    """Return the kernel's Landlock version, cached."""
    return landlock_abi(machine)


def landlock_settings(mechanism: Mechanism, interpreter: PythonInterpreter) -> dict[str, object]:
    """Return the settings for `landlock.restrict` of a bundle's process, which denies all that its
    version can deny.
    """
    abi = mechanism.landlock_abi
    rules = [(str(path), rights) for path, rights in _readable(interpreter)]
    return {
        "abi": abi,
        "rules": rules,
        "files": FILE_RIGHTS_OF_ABI[min(abi, len(FILE_RIGHTS_OF_ABI) - 1)],
        "network": ALL_NETWORK_RIGHTS if abi >= NETWORK_FROM_ABI else 0,
        "scopes": ALL_SCOPES if abi >= SCOPES_FROM_ABI else 0,
    }


def _readable(interpreter: PythonInterpreter) -> Iterator[tuple[Path, int]]:
    for file in interpreter.files:
        yield file, READ_FILE
    for directory in (*interpreter.libraries, *interpreter.stdlib):
        if not any((directory / name).is_dir() for name in HIDDEN_NAMES):
            yield directory, READ_FILE | READ_DIRECTORY
            continue
        yield directory, READ_DIRECTORY  # names only; a rule cannot withdraw rights of one above it
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name not in HIDDEN_NAMES:
                    yield Path(entry.path), READ_FILE | (READ_DIRECTORY if entry.is_dir() else 0)
