"""Schedules of a store that several machines share, as its documents ``schedules/NAME.json``.

No lock is held. A schedule is written only if it was not written since it was read here; of two
processes that find one due, the second one's write is refused, and the thread has one id for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_engine.api import Engine
from uncaged_engine.services.shared_engine import SharedEngine
from uncaged_engine.services.stores import DocumentStorage

from .schedule import (
    SUFFIX,
    Schedule,
    ScheduleDirectory,
    ScheduleFiles,
    SchedulesFound,
    parse_schedule_name,
    read_schedule,
    unknown_schedule,
)

FOLDER = "schedules/"


class ScheduleDocuments:
    """The schedules of one store, as one caller reads and writes them (`ScheduleFiles`)."""

    def __init__(self, documents: DocumentStorage, address: str) -> None:
        self._documents = documents
        self._address = address
        self._versions: dict[str, str | None] = {}

    def all(self) -> SchedulesFound:
        found: list[Schedule] = []
        problems: list[str] = []
        for name in self._names():
            try:
                found.append(self.get(name))
            except NotFoundError:
                pass  # removed meanwhile
            except DamagedError as exc:
                problems.append(str(exc))
        return SchedulesFound(schedules=tuple(found), problems=tuple(problems))

    def get(self, name: str) -> Schedule:
        data = self._read(name)
        if data is None:
            raise unknown_schedule(name, self._names())
        return read_schedule(data, name, f"{_document(name)} in {self._address}")

    def holds(self, name: str) -> bool:
        return self._read(name) is not None

    def put(self, schedule: Schedule) -> None:
        """Raises: ChangedMeanwhile: another process wrote it since it was read here."""
        name = schedule.name
        version = self._versions.get(name)
        self._versions[name] = self._documents.replace(
            _document(name), schedule.encoded(), version=version
        )

    def remove(self, name: str) -> None:
        if not self.holds(name):
            self.get(name)
        version = self._versions.pop(name)
        if version is not None:
            self._documents.remove(_document(name), version=version)

    @contextmanager
    def changing(self) -> Iterator[None]:
        yield  # versions take the place of a lock

    def _read(self, name: str) -> bytes | None:
        found = self._documents.read(_document(name))
        self._versions[name] = None if found is None else found.version
        return None if found is None else found.data

    def _names(self) -> list[str]:
        names = (name for name in self._documents.names() if name.startswith(FOLDER))
        return sorted(name.removeprefix(FOLDER).removesuffix(SUFFIX) for name in names)


def schedules_of(engine: Engine) -> ScheduleFiles:
    """Return the schedules of a store."""
    if isinstance(engine, SharedEngine):
        return ScheduleDocuments(engine.documents, str(engine.address))
    return ScheduleDirectory(engine.store)


def _document(name: str) -> str:
    return f"{FOLDER}{parse_schedule_name(name)}{SUFFIX}"
