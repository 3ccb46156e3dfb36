"""Schedules and their files, ``schedules/NAME.json``: what to start, when, and up to which due time
that was done. A file that cannot be read hides no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from uncaged_bundles import shapes
from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError, UsageError
from uncaged_bundles.names import parse_flow_name
from uncaged_bundles.records import dataclass, field
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

from .timing import Timing, parse_timing

__all__ = [
    "Missed",
    "Schedule",
    "ScheduleDirectory",
    "ScheduleFiles",
    "SchedulesFound",
    "parse_schedule_name",
    "read_schedule",
    "unknown_schedule",
]

Missed = Literal["once", "skip"]
"""What becomes of due times that passed while nothing looked: one thread for the last of them, or
none.
"""
FORMAT = 1
LOCK_TIMEOUT_S = 120.0
SUFFIX = ".json"
MAX_MS = 250_000_000_000_000
"""In the year 9892: the calendar of Python ends with 9999."""
LIMITS: Mapping[str, str] = {
    "maxRounds": "max_rounds",
    "maxSteps": "max_steps",
    "maxCost": "max_cost",
    "maxTokens": "max_tokens",
    "maxSeconds": "max_seconds",
    "maxJournalBytes": "max_journal_bytes",
    "bundleSeconds": "bundle_seconds",
}
"""Limits of a thread by their names in files, with those of `RunOptions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A flow that is started at the times of a cron expression.

    flow: a name, whose version is looked up when a thread starts, or a hash. params: as a person
    gave them, checked again at each start. directory: of relative paths and child processes.
    agents: by role, "" for the default one. limits: by the names of `LIMITS`.
    done_ms: due times up to here are done: started, skipped or failed. thread_id: the last thread.
    problem: why the last start failed; "" if it did not.
    """

    name: str
    flow: str
    timing: Timing
    created_ms: int
    done_ms: int
    directory: Path
    missed: Missed = "once"
    prompt: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    workspace: Path | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    enabled: bool = True
    thread_id: str | None = None
    problem: str = ""

    def next_ms(self, now_ms: int) -> int | None:
        """Return the next due time; None if it is disabled."""
        return self.timing.next_after(max(self.done_ms, now_ms)) if self.enabled else None

    def document(self) -> dict[str, object]:
        """Return the schedule as JSON data."""
        return {
            "schedule": self.name,
            "flow": self.flow,
            "cron": self.timing.cron,
            "timezone": self.timing.timezone,
            "missed": self.missed,
            "prompt": self.prompt,
            "params": dict(self.params),
            "directory": str(self.directory),
            "workspace": None if self.workspace is None else str(self.workspace),
            "agents": dict(self.agents),
            "limits": dict(self.limits),
            "enabled": self.enabled,
            "createdMs": self.created_ms,
            "doneMs": self.done_ms,
            "threadId": self.thread_id,
            "problem": self.problem,
        }

    def encoded(self) -> bytes:
        """Return the schedule as its file has it."""
        document = {"format": FORMAT, **self.document()}
        return f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode()

    @classmethod
    def read(cls, data: bytes, name: str) -> Schedule:
        """Read a schedule's file.

        Raises:
            ShapeError, UsageError: it is malformed, of a newer format, or another schedule's.
        """
        path: shapes.Path = ("schedule",)
        try:
            fields = shapes.mapping(json.loads(data), path)
        except (ValueError, RecursionError):
            raise shapes.ShapeError(path, "is not whole JSON") from None
        number = shapes.whole(shapes.required(fields, "format", path), (*path, "format"))
        if number != FORMAT:
            raise shapes.ShapeError((*path, "format"), f"is {number}; this version reads {FORMAT}")

        def text(key: str) -> str:
            return shapes.text(shapes.required(fields, key, path), (*path, key))

        def inner(key: str) -> dict[str, object]:
            return shapes.mapping(shapes.required(fields, key, path), (*path, key))

        def time(key: str) -> int:
            return shapes.whole_between(0, MAX_MS)(shapes.required(fields, key, path), (*path, key))

        if text("schedule") != name:
            raise shapes.ShapeError((*path, "schedule"), "is not the name of its file")
        missed: Any = shapes.one_of(*get_args(Missed))(text("missed"), (*path, "missed"))
        limits = inner("limits")
        shapes.known_keys(limits, tuple(LIMITS), (*path, "limits"))
        return cls(
            name=name,
            flow=text("flow"),
            timing=parse_timing(text("cron"), text("timezone")),
            created_ms=time("createdMs"),
            done_ms=time("doneMs"),
            directory=Path(text("directory")),
            missed=missed,
            prompt=text("prompt"),
            params=inner("params"),
            workspace=None if fields.get("workspace") is None else Path(text("workspace")),
            agents={
                role: shapes.text(agent, (*path, "agents", role))
                for role, agent in inner("agents").items()
            },
            limits={
                key: shapes.not_negative(value, (*path, "limits", key))
                for key, value in limits.items()
            },
            enabled=shapes.truth(shapes.required(fields, "enabled", path), (*path, "enabled")),
            thread_id=None if fields.get("threadId") is None else text("threadId"),
            problem=text("problem"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulesFound:
    """Contents of the directory. schedules: by name. problems: a sentence for each file that cannot
    be read.
    """

    schedules: tuple[Schedule, ...]
    problems: tuple[str, ...]


class ScheduleFiles(Protocol):
    """The schedules of one store, wherever they are kept."""

    def all(self) -> SchedulesFound:
        """Read all schedules."""

    def get(self, name: str) -> Schedule:
        """Read the schedule with this name.

        Raises:
            NotFoundError: there is none. DamagedError: its file cannot be read.
        """

    def holds(self, name: str) -> bool:
        """Return whether there is a file for this name, readable or not."""

    def put(self, schedule: Schedule) -> None:
        """Write a schedule, durably and whole. It was read before, or looked for by `holds`."""

    def remove(self, name: str) -> None:
        """Remove a schedule's file, readable or not.

        Raises:
            NotFoundError: there is none.
        """

    def changing(self) -> AbstractContextManager[None]:
        """Return a block in which schedules are read and written, and their threads are started."""


class ScheduleDirectory:
    """The schedules of a directory (`ScheduleFiles`)."""

    def __init__(self, store: Store) -> None:
        self._path = store.root / "schedules"

    def all(self) -> SchedulesFound:
        found: list[Schedule] = []
        problems: list[str] = []
        for name in self._names():
            try:
                found.append(self.get(name))
            except NotFoundError:
                pass  # removed meanwhile
            except UncagedError as exc:
                problems.append(str(exc))
        return SchedulesFound(schedules=tuple(found), problems=tuple(problems))

    def get(self, name: str) -> Schedule:
        path = self._file(name)
        data = read_if_there(path)
        if data is None:
            raise unknown_schedule(name, self._names())
        return read_schedule(data, name, str(path))

    def holds(self, name: str) -> bool:
        return self._file(name).exists()

    def put(self, schedule: Schedule) -> None:
        self._path.mkdir(mode=0o700, exist_ok=True)
        write_atomically(self._file(schedule.name), schedule.encoded())

    def remove(self, name: str) -> None:
        if not self.holds(name):
            self.get(name)
        self._file(name).unlink(missing_ok=True)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock of the directory, under which schedules are written and their threads are
        started.

        Raises:
            RefusedError: another process holds it for long.
        """
        with changing(self._path, timeout_s=LOCK_TIMEOUT_S):
            yield

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._path)  # noqa: PTH208 - names alone, no paths
        except FileNotFoundError:
            return []
        return sorted(
            name.removesuffix(SUFFIX)
            for name in names
            if name.endswith(SUFFIX) and not name.startswith(".")
        )

    def _file(self, name: str) -> Path:
        return self._path / f"{parse_schedule_name(name)}{SUFFIX}"


def read_schedule(data: bytes, name: str, where: str) -> Schedule:
    """Read a schedule's file. where: its path or name, for the message.

    Raises:
        DamagedError: it cannot be read.
    """
    try:
        return Schedule.read(data, name)
    except (shapes.ShapeError, UsageError) as exc:
        raise DamagedError(
            f"{where} cannot be read: {exc}; 'uncaged-workflow schedule rm {name}' removes it"
        ) from exc


def unknown_schedule(name: str, known: list[str]) -> NotFoundError:
    """Return the error of a name that no schedule has."""
    listed = f"there are: {', '.join(known[:10])}" if known else "there are none"
    return NotFoundError(f"no schedule {name!r}; {listed}")


def parse_schedule_name(text: str) -> str:
    """Return *text* if it is a schedule's name, which has the form of a flow's.

    Raises:
        UsageError: it is none.
    """
    try:
        return str(parse_flow_name(text))
    except UsageError as exc:
        raise UsageError(
            f"{text[:80]!r} is no name of a schedule; use lower-case words of letters and digits joined by '-'"
        ) from exc
