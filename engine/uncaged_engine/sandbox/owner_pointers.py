"""Links to the records of changed owners, in the directory that all processes of root share. By
them a run finds what a killed process of another store has left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.storage.runtime import runtime_directory

FOLDER = "lent"


def point_to(record: Path) -> None:
    """Link to a record, in the place of one that another store has for the same directory."""
    if (folder := _folder()) is None:
        return
    fresh = folder / f"{record.name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)  # of a run with this process id that was killed here
    fresh.symlink_to(record)
    fresh.replace(folder / record.name)


def unlink_pointer(name: str) -> None:
    """Remove the link to a record, if there is one."""
    if (folder := _folder()) is not None:
        (folder / name).unlink(missing_ok=True)


def pointed_records() -> Iterator[Path]:
    """Yield the records of all stores of this machine; one may be gone."""
    if (folder := _folder()) is not None:
        for link in folder.glob("*.json"):
            with suppress(OSError):
                yield link.readlink()


def _folder() -> Path | None:
    """Return the directory with the links; None if another user has made one in its place: then
    each store knows its own records alone.
    """
    try:
        folder = runtime_directory(os.environ) / FOLDER
    except RefusedError:
        return None
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
