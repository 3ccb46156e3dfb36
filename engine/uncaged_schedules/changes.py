"""Changes of a store's schedules: add, remove, enable, disable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.records import replace
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.parameters import settle

from .documents import schedules_of
from .schedule import LIMITS, Missed, Schedule, SchedulesFound
from .timing import local_timezone, parse_timing

__all__ = ["add", "find", "list_schedules", "remove", "set_enabled"]


def list_schedules(engine: Engine) -> SchedulesFound:
    """Return the readable schedules of a store by name, and a sentence for each of the others."""
    return schedules_of(engine).all()


def find(engine: Engine, name: str) -> Schedule:
    """Return one schedule.

    Raises:
        NotFoundError: there is none. DamagedError: its file cannot be read.
    """
    return schedules_of(engine).get(name)


def add(
    engine: Engine,
    flow: str,
    cron: str,
    *,
    name: str | None = None,
    timezone: str | None = None,
    missed: Missed = "once",
    prompt: str = "",
    params: Mapping[str, object] | None = None,
    directory: Path | None = None,
    workspace: Path | None = None,
    agents: Mapping[str, str] | None = None,
    limits: Mapping[str, float | None] | None = None,
) -> Schedule:
    """Add a schedule, which is first due after this moment.

    Args:
        flow: a flow's name or a bundle's hash. cron: five fields, or a name such as ``@daily``.
        name: None takes the flow's. timezone: None takes this machine's. directory: None takes the
            current one. agents, limits: see `Schedule`; a limit that is None binds nothing.
    Raises:
        UsageError: the expression, the zone, a parameter or the workspace is not valid, or the name
            is taken.
        NotFoundError, RefusedError: there is no such flow, or it is disabled; or a shared store's
            workers could not start it.
    """
    bundle = engine.bundle(flow)
    if engine.is_shared and (workspace is not None or agents):
        raise RefusedError(
            "a schedule of a shared store may be started by any machine: leave out --workspace and --agent"
        )
    if workspace is not None and not workspace.is_dir():
        raise UsageError(
            f"the workspace {str(workspace)!r} is not a directory; name another with --workspace DIR"
        )
    timing = parse_timing(cron, timezone or local_timezone())
    where = (directory or Path.cwd()).absolute()
    parameters = dict(params or {})
    settle(
        bundle.descriptor.name,
        bundle.descriptor.parameters,
        parameters,
        environment=engine.config.for_agents(os.environ),
        directory=where,
    )
    files = schedules_of(engine)
    now_ms = engine.clock_ms()
    schedule = Schedule(
        name=_name_of(engine, flow, bundle) if name is None else name,
        flow=flow,
        timing=timing,
        created_ms=now_ms,
        done_ms=now_ms,
        directory=where,
        missed=missed,
        prompt=prompt,
        params=parameters,
        workspace=workspace,
        agents=dict(agents or {}),
        limits={
            key: value
            for key, value in (limits or {}).items()
            if key in LIMITS and value is not None
        },
    )
    with files.changing():
        if files.holds(schedule.name):
            raise UsageError(
                f"there is a schedule {schedule.name!r}; choose another --name, or 'uncaged-workflow schedule rm {schedule.name}'"
            )
        files.put(schedule)
    return schedule


def _name_of(engine: Engine, flow: str, bundle: Bundle) -> str:
    """Return a flow's name; of a bundle that a hash names, that of its descriptor."""
    named = engine.registry.flow(flow)
    return (bundle.descriptor.name if named is None else named.name).lower()


def remove(engine: Engine, name: str) -> None:
    """Remove a schedule; its threads stay.

    Raises:
        NotFoundError: there is none.
    """
    files = schedules_of(engine)
    with files.changing():
        files.remove(name)


def set_enabled(engine: Engine, name: str, *, enabled: bool) -> Schedule:
    """Enable or disable a schedule. Due times that passed while it was disabled are not caught up.

    Raises:
        NotFoundError: there is none. DamagedError: its file cannot be read.
    """
    files = schedules_of(engine)
    with files.changing():
        schedule = files.get(name)
        if schedule.enabled == enabled:
            return schedule
        changed = replace(schedule, enabled=enabled, problem="")
        if enabled:
            # also after a clock that was far ahead: a due time that was started has its thread
            changed = replace(changed, done_ms=engine.clock_ms())
        files.put(changed)
        return changed
