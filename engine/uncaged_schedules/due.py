"""Start of due schedules and resumption of threads whose sleep has ended.

Rule 1: the id of a thread follows from its schedule and its due time, and it is started under the
lock of the schedules, or in a store that takes each id once: each due time has one thread at most,
also if two processes look at once, or one dies.
Rule 2: a problem of one schedule or thread is reported and stops no other. The person is notified
of it as config.yaml says, and of threads that died.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError, without_thread
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.children import derived_id
from uncaged_engine.door.notifications import Notification
from uncaged_engine.services.stores import ChangedMeanwhile

from .documents import schedules_of
from .schedule import LIMITS, Schedule, ScheduleFiles

__all__ = ["DueProblem", "DueReport", "DueRun", "due"]

GRACE_MS = 5 * 60_000
"""A due time is missed if it is found later than this: timers look every minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRun:
    """A due time of a schedule that was started or skipped. thread_id: None if it was skipped.
    earlier: how many due times before it were found with it and get no thread of their own (at most
    999 are counted).
    """

    schedule: str
    due_ms: int
    thread_id: ThreadId | None = None
    earlier: int = 0

    def document(self) -> dict[str, object]:
        """Return the run as JSON data."""
        thread = {} if self.thread_id is None else {"threadId": self.thread_id}
        return {"schedule": self.schedule, **thread, "dueMs": self.due_ms, "earlier": self.earlier}


@dataclass(frozen=True, slots=True, kw_only=True)
class DueProblem:
    """A schedule that could not be started, or a thread that could not be resumed. schedule: None
    for a thread, and for a schedule's file that cannot be read.
    """

    message: str
    schedule: str | None = None
    flow: str = ""
    thread_id: ThreadId | None = None

    def document(self) -> dict[str, object]:
        """Return the problem as JSON data."""
        return {"schedule": self.schedule, "threadId": self.thread_id, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class DueReport:
    """What one look did. resumed: the threads whose sleep had ended."""

    started: tuple[DueRun, ...]
    skipped: tuple[DueRun, ...]
    resumed: tuple[ThreadId, ...]
    problems: tuple[DueProblem, ...]

    def document(self) -> dict[str, object]:
        """Return the report as JSON data."""
        return {
            "started": [one.document() for one in self.started],
            "skipped": [one.document() for one in self.skipped],
            "resumedThreadIds": list(self.resumed),
            "problems": [one.document() for one in self.problems],
        }


def due(engine: Engine, environment: Mapping[str, str] | None = None) -> DueReport:
    """Start each schedule that is due, and resume each thread whose sleep has ended.

    Args:
        environment: of child processes; None takes this process's.
    """
    variables = dict(os.environ if environment is None else environment)
    files = schedules_of(engine)
    found = files.all()
    started: list[DueRun] = []
    skipped: list[DueRun] = []
    problems = [DueProblem(message=text) for text in found.problems]
    for schedule in found.schedules:
        if _due_run(schedule, engine.clock_ms()) is None:
            continue
        try:
            with files.changing():
                run = _take(engine, files, schedule.name, variables)
        except ChangedMeanwhile:
            continue  # another process took the due time, and reports it
        except (UncagedError, OSError) as exc:
            problems.append(
                DueProblem(schedule=schedule.name, flow=schedule.flow, message=without_thread(exc))
            )
            continue
        if run is not None:
            (skipped if run.thread_id is None else started).append(run)
    resumed, unresumed = _resume_sleepers(engine, variables)
    unsent = _notify(engine, problems, variables)
    return DueReport(
        started=tuple(started),
        skipped=tuple(skipped),
        resumed=tuple(resumed),
        problems=(*problems, *unresumed, *(DueProblem(message=text) for text in unsent)),
    )


def _notify(
    engine: Engine, problems: Iterable[DueProblem], environment: Mapping[str, str]
) -> list[str]:
    """Notify a person of schedules that could not be started, and of threads that died; return a
    sentence for each notification that was not delivered.
    """
    unsent = []
    try:
        settings = engine.config.notify
        for problem in problems:
            if settings is None or problem.schedule is None or "schedule" not in settings.events:
                continue
            notification = Notification(
                event="schedule",
                subject=problem.schedule,
                flow=problem.flow,
                message=problem.message,
                timestamp_ms=engine.clock_ms(),
            )
            try:
                engine.notify(notification, environment)
            except (UncagedError, OSError) as exc:
                unsent.append(f"schedule {problem.schedule}: {without_thread(exc)}")
        return unsent + engine.notify_deaths(environment=environment)
    except (UncagedError, OSError) as exc:  # config.yaml cannot be read, or the store
        return [*unsent, without_thread(exc)]


def _due_run(schedule: Schedule, now_ms: int) -> DueRun | None:
    """Return the last due time that is not done; None if there is none, or it is disabled."""
    times = schedule.timing.between(schedule.done_ms, now_ms) if schedule.enabled else None
    if times is None:
        return None
    return DueRun(schedule=schedule.name, due_ms=times.latest_ms, earlier=times.count - 1)


def _take(
    engine: Engine, files: ScheduleFiles, name: str, environment: Mapping[str, str]
) -> DueRun | None:
    """Start or skip a schedule's due time and record that; the caller holds the lock.

    Raises:
        UncagedError, OSError: it could not be started. The due time is done all the same: the next
            one is tried again, and the schedule shows the problem.
    """
    try:
        schedule = files.get(name)  # again: another process may have come first
    except NotFoundError:
        return None
    now_ms = engine.clock_ms()
    run = _due_run(schedule, now_ms)
    if run is None:
        return None
    done = replace(schedule, done_ms=run.due_ms)
    if schedule.missed == "skip" and now_ms - run.due_ms > GRACE_MS:
        files.put(done)
        return run
    try:
        thread = _start(engine, schedule, run.due_ms, environment)
    except (UncagedError, OSError) as exc:
        files.put(replace(done, problem=without_thread(exc)))
        raise
    # crash here: the thread runs, the schedule does not say so; the next `due` finds the thread
    files.put(replace(done, thread_id=thread, problem=""))
    return replace(run, thread_id=thread)


def _start(
    engine: Engine, schedule: Schedule, due_ms: int, environment: Mapping[str, str]
) -> ThreadId:
    """Start the thread of a due time; one that was written and has no worker is resumed, unless
    another store started it.
    """
    thread = derived_id(f"schedule {schedule.name} {schedule.created_ms}", due_ms)
    limits: dict[str, float] = {LIMITS[key]: value for key, value in schedule.limits.items()}
    options = RunOptions(
        agents=schedule.agents,
        workspace=schedule.workspace,
        directory=schedule.directory if engine.is_shared else _directory(schedule),
        environment=environment,
        **limits,  # type: ignore[arg-type]  # whole numbers are whole in the file, too
    )
    if not engine.has_thread(thread):
        try:
            engine.run(
                schedule.flow,
                prompt=schedule.prompt,
                params=schedule.params,
                options=options,
                thread=thread,
            )
        except RefusedError:
            # on a shared store, another process may have been first
            if not (engine.is_shared and engine.has_thread(thread)):
                raise
        if not engine.is_shared:
            return thread
        # crash of another process before: the thread was submitted, and given up
    found = engine.thread(thread)
    if found.summary.status == "interrupted" and not found.copied:
        engine.resume(
            thread, options=RunOptions(directory=options.directory, environment=environment)
        )
    return thread


def _directory(schedule: Schedule) -> Path:
    if not schedule.directory.is_dir():
        raise RefusedError(
            f"schedule {schedule.name!r} runs in {schedule.directory}, which is gone; remove the schedule and add it anew"
        )
    return schedule.directory


def _resume_sleepers(
    engine: Engine, environment: Mapping[str, str]
) -> tuple[list[ThreadId], list[DueProblem]]:
    """Resume each thread whose sleep has ended; return those that go on, and the problems."""
    resumed: list[ThreadId] = []
    problems: list[DueProblem] = []
    for thread in engine.sleepers():
        try:
            resumed.append(engine.resume(thread, options=RunOptions(environment=environment)))
        except (UncagedError, OSError) as exc:
            if not _was_resumed(engine, thread):
                message = f"thread {thread} was not resumed: {exc}"
                problems.append(DueProblem(thread_id=thread, message=message))
    return resumed, problems


def _was_resumed(engine: Engine, thread: ThreadId) -> bool:
    """Whether another process resumed or removed a thread meanwhile."""
    try:
        return engine.thread(thread).summary.status != "interrupted"
    except NotFoundError:
        return True
    except UncagedError:
        return False
