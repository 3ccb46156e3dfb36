"""Origin of a thread: a file beside its journal says how much of it was written on another machine,
and what of that is used here.

The journal cannot say so, since a stranger wrote it. The file (``ID.imported``) is on disk before
the journal has its name, stays with it in the archive, and is copied to forks. A resume control
with a ``binding`` that this machine appended behind the imported lines replaces the agents,
workspace, test command and limits of the start record. Without one the thread is not driven.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.records import asdict, dataclass
from uncaged_bundles.storage.files import read_if_there, write_atomically

from .archive import beside
from .recover import History

SUFFIX = ".imported"
USED = frozenset(
    (
        "format",
        "engine",
        "python",
        "name",
        "hash",
        "threadId",
        "parameters",
        "forkFrom",
        "timestamp",
    )
)
"""The keys of an imported start record that are used: the bundle's input, and what identifies the
thread. All others are not.
"""
BOUND = ("agents", "sandbox", "testCommand", "workspace")
"""The keys of a start record that a binding brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOrigin:
    """Part of a journal that another machine wrote: its first *bytes* bytes, and its first *steps*
    steps.
    """

    bytes: int
    steps: int
    importedMs: int

    @classmethod
    def of(cls, journal: Path) -> ThreadOrigin | None:
        """Return the origin of the thread with this journal, plain or archived; None for a thread
        that this machine started.

        Raises:
            DamagedError: the file is there and cannot be read. None instead would let a stranger's
                choices pass for those of this machine.
        """
        path = path_beside(journal)
        data = read_if_there(path)
        return None if data is None else parse_origin(data, str(path))

    def write(self, journal: Path) -> None:
        """Make the file durable; call it before the journal has its name."""
        write_atomically(path_beside(journal), data_of(self))

    def binding(self, history: History) -> Mapping[str, Any] | None:
        """Return the last binding that this machine appended, or None. Bindings inside the imported
        lines are a stranger's.
        """
        return history.binding if history.binding_at >= self.bytes else None

    def start(self, record: Mapping[str, Any], history: History) -> dict[str, Any]:
        """Return the start record as it is used: a stranger's input, this machine's agents,
        workspace and test command.
        """
        binding = self.binding(history)
        used = {key: value for key, value in record.items() if key in USED}
        bound = (
            {key: binding[key] for key in BOUND if key in binding} if binding is not None else {}
        )
        return {**used, **bound, "imported": {"steps": self.steps, "bound": binding is not None}}

    def step(self, record: dict[str, Any], history: History) -> dict[str, Any]:
        """Return a finished step without a stranger's session, and without a snapshot unless the
        binding names that commit.
        """
        seq = record.get("seq")
        if not isinstance(seq, int) or seq > self.steps:
            return record
        binding = self.binding(history) or {}
        error = record.get("error")
        kept = _without_places(record, binding.get("snapshot"))
        return (
            {**kept, "error": _without_places(error, binding.get("snapshot"))}
            if isinstance(error, Mapping)
            else kept
        )


def data_of(origin: ThreadOrigin) -> bytes:
    """Return the bytes of the file of an origin."""
    return json.dumps(asdict(origin)).encode() + b"\n"


def parse_origin(data: bytes, where: str) -> ThreadOrigin:
    """Return the origin from the bytes of its file. Raises: DamagedError, as `ThreadOrigin.of`."""
    try:
        found = json.loads(data)
        values = {name: found[name] for name in ("bytes", "steps", "importedMs")}
        if not all(type(value) is int and value >= 0 for value in values.values()):
            raise ValueError("its numbers are none")
        return ThreadOrigin(**values)
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise DamagedError(
            f"{where}: cannot be read ({exc}); remove the thread, then import it again"
        ) from exc


def path_beside(journal: Path) -> Path:
    """Return where the origin of the thread with this journal is written."""
    return beside(journal, SUFFIX)


def _without_places(record: Mapping[str, Any], snapshot: object) -> dict[str, Any]:
    return {
        key: value
        for key, value in record.items()
        if key not in ("session", "gitPack") and (key != "snapshot" or value == snapshot)
    }


def unbound(thread: str) -> str:
    """Return why an imported thread does not go on, with the next step."""
    return (
        f"thread {thread} was imported and is not bound to this machine: its agents, workspace and test command are a stranger's; "
        f"`uncaged-workflow resume {thread}` shows what would be used here instead, `--accept` accepts it"
    )
