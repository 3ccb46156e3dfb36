"""The sandbox that holds on this machine is chosen here, by trying it; where none holds, nothing runs."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uncaged_bundles.errors import SandboxUnavailable, UsageError

from .bubblewrap import isolation
from .interpreter import HIDDEN_NAMES, Interpreter
from .landlock import ALL_FILE_RIGHTS, ALL_NETWORK_RIGHTS, ALL_SCOPES, READ_DIRECTORY, READ_FILE
from .syscalls import audit_arch, number_of

LANDLOCK_ABI = 6
_LANDLOCK_CREATE_RULESET_VERSION = 1
_PROBE_TIMEOUT_S = 10
_USUAL_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A sandbox that was seen to work here, or is assumed to.

    program: bubblewrap's path (None for Landlock). disable_userns: this bubblewrap can forbid nested user namespaces.
    landlock_abi: the kernel's (0 for bubblewrap).
    """

    name: Literal["bubblewrap", "landlock"]
    machine: str
    program: Path | None = None
    disable_userns: bool = False
    landlock_abi: int = 0


def choose(prefer: str = "auto") -> Mechanism:
    """Return the sandbox to use: bubblewrap if it works, else Landlock.

    Args:
        prefer: ``auto``, ``bubblewrap`` or ``landlock``; the latter two allow no other.
    Raises:
        SandboxUnavailable: what was asked for does not hold here; says why and what to install.
        UsageError: no such preference.
    """
    if prefer not in ("auto", "bubblewrap", "landlock"):
        raise UsageError(f"sandbox: {prefer!r} is none of 'auto', 'bubblewrap', 'landlock'")
    return _choose(prefer)


def assume(prefer: str = "auto") -> Mechanism | None:
    """The sandbox that `choose` would try first, untried: for whoever starts it at once and sees whether it holds.

    Returns:
        None if nothing can be assumed without a look at the machine.
    """
    program = None if prefer == "landlock" else _bubblewrap()
    if program is None:
        return None
    return Mechanism(name="bubblewrap", machine=os.uname().machine, program=Path(program), disable_userns=True)


@functools.cache
def _choose(prefer: str) -> Mechanism:
    machine = os.uname().machine
    audit_arch(machine)
    reasons = []
    if prefer != "landlock":
        found = _try_bubblewrap(machine)
        if isinstance(found, Mechanism):
            return found
        reasons.append(found)
    if prefer != "bubblewrap":
        abi = landlock_abi(machine)
        if abi >= LANDLOCK_ABI:
            return Mechanism(name="landlock", machine=machine, landlock_abi=abi)
        reasons.append(f"Landlock: the kernel offers version {abi}, {LANDLOCK_ABI} is needed (Linux 6.12)")
    advice = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
    raise SandboxUnavailable(
        f"no sandbox holds on this machine. {'. '.join(reasons)}. Next step: {advice}; until then only trusted bundles run"
    )


def _try_bubblewrap(machine: str) -> Mechanism | str:
    """The mechanism, or why it does not work."""
    program = _bubblewrap()
    if program is None:
        return "bubblewrap: not installed"
    complaint = ""
    for disable_userns in (True, False):
        command = [program, *isolation(disable_userns=disable_userns), "--ro-bind", "/", "/", "--", "/bin/true"]
        try:
            tried = subprocess.run(command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False, env={}, cwd="/")
        except (OSError, subprocess.TimeoutExpired) as exc:
            return f"bubblewrap: {program} does not run: {exc}"
        if tried.returncode == 0:
            return Mechanism(name="bubblewrap", machine=machine, program=Path(program), disable_userns=disable_userns)
        complaint = tried.stderr.decode(errors="replace").strip()[:300]
    return f"bubblewrap: {program} makes no sandbox here ({complaint})"


def _bubblewrap() -> str | None:
    """Where the program is."""
    for place in _USUAL_PLACES:
        if os.access(place, os.X_OK):
            return place
    import shutil  # it brings every compression module, and bubblewrap stands in a usual place

    return shutil.which("bwrap")


def landlock_abi(machine: str) -> int:
    """The version of Landlock that the kernel offers; 0 if it offers none."""
    import ctypes

    number = number_of("landlock_create_ruleset", machine) or -1
    version = ctypes.CDLL(None).syscall(ctypes.c_long(number), None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION))
    return max(0, int(version))


@functools.cache
def known_landlock_abi(machine: str) -> int:
    """The same, asked once."""
    return landlock_abi(machine)


def landlock_settings(mechanism: Mechanism, interpreter: Interpreter) -> dict[str, object]:
    """What a bundle's process may read under Landlock, in the form that `landlock.restrict` takes."""
    rules = [(str(path), rights) for path, rights in _readable(interpreter)]
    denied = {"files": ALL_FILE_RIGHTS, "network": ALL_NETWORK_RIGHTS, "scopes": ALL_SCOPES}
    return {"abi": mechanism.landlock_abi, "rules": rules, **denied}


def _readable(interpreter: Interpreter) -> Iterator[tuple[Path, int]]:
    for file in interpreter.files:
        yield file, READ_FILE
    for directory in (*interpreter.libraries, *interpreter.stdlib):
        if not any((directory / name).is_dir() for name in HIDDEN_NAMES):
            yield directory, READ_FILE | READ_DIRECTORY
            continue
        yield directory, READ_DIRECTORY  # names only; a rule cannot take back what one above it gave
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name not in HIDDEN_NAMES:
                    yield Path(entry.path), READ_FILE | (READ_DIRECTORY if entry.is_dir() else 0)
