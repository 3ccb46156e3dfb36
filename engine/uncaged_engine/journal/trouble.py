"""Notes about threads that were left because of the disk or another lack, and about journals whose
flush failed.

A note is a small file in the user's runtime directory, since the store's disk may be full. Later
readers of the thread show it; the next owner of the journal writes the doubtful bytes again and
removes it. Without a runtime directory only live followers learn the reason.
"""

from __future__ import annotations

import json
import os
from _blake2 import blake2b
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.records import asdict, dataclass
from uncaged_bundles.storage import runtime

DIRECTORY = "left"
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Reason why a thread was left.

    message: what failed, with the path and the reason.
    on_disk: how many bytes of the journal are known to be on disk after a flush that failed; None:
    no flush failed.
    """

    message: str
    on_disk: int | None = None

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Trouble:
        """Read the trouble from a note or from a worker's event."""
        on_disk = fields.get("on_disk")
        return cls(
            message=str(fields.get("message") or ""),
            on_disk=on_disk if isinstance(on_disk, int) else None,
        )

    def document(self) -> dict[str, object]:
        return asdict(self)


def write(journal: Path, trouble: Trouble) -> None:
    """Leave a note about the thread whose journal this is, if there is a place for it."""
    place = _place(journal)
    if place is None:
        return
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, exist_ok=True)
        temporary.write_text(json.dumps({"boot": _boot(), **trouble.document()}), "utf-8")
        temporary.replace(place)


def noted() -> frozenset[str]:
    """Return the names of all notes about threads of the user, of any store; see `name_of`."""
    directory = _directory(os.environ.get(runtime.VARIABLE, ""))
    if directory is None:
        return frozenset()
    try:
        return frozenset(os.listdir(directory))  # noqa: PTH208 - only names, at each listing
    except OSError:
        return frozenset()


def name_of(journal: str) -> str:
    """Return the name that a note about a thread has. journal: its real path, since one store may
    be known by several.
    """
    return f"{blake2b(os.fsencode(journal), digest_size=12).hexdigest()}.json"


def find(journal: Path) -> Trouble | None:
    """Return the note about a thread, if there is one. After a reboot the journal holds what the
    disk kept, and nothing of it is in doubt.
    """
    directory = _directory(os.environ.get(runtime.VARIABLE, ""))
    if directory is None or not os.path.isdir(directory):  # noqa: PTH112 - asked for each thread of a listing
        return None
    try:
        fields = json.loads(_in(directory, journal).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(fields, dict):
        return None
    return Trouble.of(fields if fields.get("boot") == _boot() else {**fields, "on_disk": None})


def clear(journal: Path) -> None:
    """Remove the note about a thread."""
    place = _place(journal)
    if place is not None:
        with suppress(OSError):
            place.unlink()
            place.parent.rmdir()  # the last one: listings need not look into it


def _place(journal: Path) -> Path | None:
    directory = _directory(os.environ.get(runtime.VARIABLE, ""))
    return None if directory is None else _in(directory, journal)


def _in(directory: Path, journal: Path) -> Path:
    return directory / name_of(os.path.realpath(journal))


@lru_cache(maxsize=4)
def _directory(named: str) -> Path | None:
    try:
        return runtime.runtime_directory({runtime.VARIABLE: named}) / DIRECTORY
    except (OSError, UncagedError):
        return None


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return BOOT.read_text("ascii").strip()
    except OSError:
        return ""
