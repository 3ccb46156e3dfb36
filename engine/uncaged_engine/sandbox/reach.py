"""Landlock rules for scripts: access rights per path, and whether the script's uid can traverse to
them.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from uncaged_bundles.errors import SandboxUnavailable

from .bounds import ScriptView
from .closed import allows
from .landlock import ALL_FILE_RIGHTS, ALL_NETWORK_RIGHTS, ALL_SCOPES, READ_DIRECTORY, READ_FILE
from .scratch import ScratchUser

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
TRUNCATE = 1 << 14
DEVICE_CONTROL = 1 << 15
MAKE_DEVICES = 1 << 6 | 1 << 11
READ = READ_FILE | READ_DIRECTORY
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_CONTROL
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
FACTS = (
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/sys/kernel",
    "/etc/passwd",
    "/etc/group",
)

_CAP_DAC_READ_SEARCH = 2


def script_landlock(
    view: ScriptView, private: Path, *, network: bool, abi: int
) -> dict[str, object]:
    """Return rights by path, in the form that `landlock.restrict` takes."""
    rules: list[tuple[Path, int]] = [
        (path, READ) for path in (*view.read, *(link for link, _ in view.links))
    ]
    rules += [(path, READ_DIRECTORY) for path in view.listed]
    rules += [(Path(name), READ) for name in FACTS]
    rules += [(Path(name), READ_FILE | WRITE_FILE | TRUNCATE) for name in DEVICES]
    rules += [
        (path, ALL_FILE_RIGHTS & ~MAKE_DEVICES & ~DEVICE_CONTROL & ~EXECUTE)
        for path in (*view.write, private)
    ]
    rules += [(path, READ | EXECUTE) for path in view.execute]
    if view.shell is not None:  # it cannot be replaced here: it is the machine's own
        rules.append((view.shell[0], READ | EXECUTE))
    limited = [
        (str(path), rights if path.is_dir() else rights & FILE_RIGHTS) for path, rights in rules
    ]
    denied = {
        "files": ALL_FILE_RIGHTS,
        "network": 0 if network else ALL_NETWORK_RIGHTS,
        "scopes": ALL_SCOPES,
    }
    return {"abi": abi, "rules": limited, **denied}


def execute_landlock(view: ScriptView, *, abi: int) -> dict[str, object]:
    """Return rules for use inside bubblewrap, if the kernel has Landlock: only listed programs run,
    not those beside them.
    """
    # there programs have loaders of their own
    paths = [*view.execute, Path("/nix/store")]
    if view.shell is not None:  # the declared one, or the machine's own in a granted directory
        paths.append(view.shell[0])
    rules = [(str(path), EXECUTE) for path in paths]
    return {"abi": abi, "rules": rules, "files": EXECUTE, "network": 0, "scopes": 0}


def needs_capability(
    view: ScriptView, program: Path, directory: Path, granted: Collection[Path], user: ScratchUser
) -> bool:
    """Return whether the script's user needs the capability to pass through closed directories;
    only as root, only with Landlock.

    With it, `shown_by_rights` keeps closed what the modes close.

    Raises:
        SandboxUnavailable: the capability is needed, and this process has none to pass on.
    """
    inside = (path for path in granted if path.is_dir() and not allows(path.stat(), user, 5))
    closed = next(
        (
            path
            for path in (program, directory, *view.read, *view.write)
            if not _reachable(path, user)
        ),
        next(inside, None),
    )
    if closed is None:
        return False
    status = Path("/proc/self/status").read_text()
    permitted = int(
        next(line for line in status.splitlines() if line.startswith("CapPrm")).split()[1], 16
    )
    if permitted >> _CAP_DAC_READ_SEARCH & 1:
        return True
    raise SandboxUnavailable(
        f"as root a script runs as user {user.uid}, who cannot reach {str(closed)!r}; install bubblewrap, or start as an ordinary user"
    )


def _reachable(path: Path, user: ScratchUser) -> bool:
    """Return whether every directory above the path lets the user pass."""
    return all(
        allows(directory.stat(), user, 1) for directory in Path(os.path.realpath(path)).parents
    )
