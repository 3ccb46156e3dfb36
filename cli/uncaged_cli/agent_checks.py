"""Checks of the agents in use on this machine, for `doctor` and `doctor --live`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import UncagedError

from .display.costs import spell_spent
from .display.durations import spell
from .machine_checks import Check

if TYPE_CHECKING:
    from uncaged_agents.health.check import CheckContext
    from uncaged_engine.api import Engine
    from uncaged_engine.door.agents import AgentCheck


def agent_checks(engine: Engine) -> Iterator[Check]:
    """Yield a problem for each agent that lacks a key, a program or a file; no request is sent and
    no process started.
    """
    from uncaged_agents.health.targets import find_missing

    context = check_context(engine)
    for one, found in find_missing(context, Path.cwd()) if context is not None else ():
        yield Check(
            name=one.name,
            level=found.level,
            text=clean_line(found.text),
            remedy=clean_line(found.remedy),
        )


def check_context(engine: Engine) -> CheckContext | None:
    """Return the context of the checks; None if the configuration cannot be read, which is a check
    of its own.
    """
    from uncaged_agents.health.check import CheckContext
    from uncaged_bundles.ids import new_thread_id

    try:
        config = engine.config
    except UncagedError:
        return None
    thread = new_thread_id(time.time_ns() // 1_000_000, os.urandom(10))
    return CheckContext(config=config, environment=config.carried(os.environ), thread=thread)


def live_checks(engine: Engine) -> Iterator[Check]:
    """Try each agent, and yield its outcome as soon as it is known."""
    from uncaged_agents.health.targets import check_all

    context = check_context(engine)
    for one, found in check_all(context, Path.cwd()) if context is not None else ():
        yield Check(
            name=one.name,
            level=found.level,
            text=clean_line(describe_check(found)),
            remedy=clean_line(found.remedy),
            live={
                "use": one.use,
                "where": one.where,
                "asked": found.asked,
                "seconds": found.seconds,
                "model": found.model or None,
                "usage": dict(found.usage),
            },
        )


def describe_check(found: AgentCheck) -> str:
    """Return the outcome with the time, the model and the usage."""
    from uncaged_engine.journal.usage import Spent

    model = f"model {found.model}" if found.model and found.model not in found.text else ""
    took = spell(round(found.seconds * 1000)) if found.seconds >= 0.001 else ""
    used = spell_spent(Spent().plus(found.usage)) if found.asked else ""
    asked = "" if found.asked or found.level == "problem" else "nothing was asked"
    return "; ".join(
        part
        for part in (found.text, ", ".join(part for part in (model, took, used, asked) if part))
        if part
    )
