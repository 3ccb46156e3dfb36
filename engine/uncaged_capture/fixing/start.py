"""Start of a fix: the scratch repository of a failed thread, and a thread of `fix-flow` in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

from .agent import KIND
from .failed import FIX_FLOW, FailedThread, directory_of, failed_thread, files_of
from .pages import look_at_page
from .repeated import repeated_failure
from .scratch import make_repository

__all__ = ["StartedFix", "remove_directory", "result_of", "start_fix"]

PLACE = "fixing"
"""Directory of the store for repositories of fixes that run."""
WEEK_MS = 7 * 24 * 3600 * 1000
PROMPT = "Fix the flow {flow}, which failed: error.txt has the error."


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedFix:
    """failed: the thread that failed. thread: the one that fixes its flow. directory: its
    repository.
    """

    failed: FailedThread
    thread: ThreadId
    directory: Path


def start_fix(
    engine: Engine,
    text: str,
    *,
    agents: Mapping[str, str],
    agent_settings: Mapping[str, Mapping[str, object]],
    directory: Path,
    environment: Mapping[str, str],
    now_ms: int,
    attended: bool = False,
) -> StartedFix:
    """Start a thread that fixes the flow of a failed thread.

    Args:
        agents: agents by role, "" for both; the built-in one without any. directory, environment:
            those of trials, on this machine. attended: as in `RunOptions`.
    Raises:
        RefusedError: as `failed_thread`; or it failed in the same way within a day of a fix.
    """
    failed = failed_thread(engine, text)
    if (reason := repeated_failure(engine.proposals, failed, now_ms)) is not None:
        raise RefusedError(reason)
    page = look_at_page(engine, failed.bundle, failed.case, environment)
    _sweep(engine.store.root / PLACE, now_ms)
    repository = engine.store.root / PLACE / f"{failed.id}-{now_ms}"
    files = files_of(failed, directory_of(engine, directory), page)
    make_repository(repository, files, environment)
    # crash here: a repository that no thread works in; a later fix sweeps it
    thread = engine.run(
        FIX_FLOW,
        prompt=PROMPT.format(flow=failed.flow),
        params={"thread": failed.id},
        options=RunOptions(
            agents=agents or {"": KIND},
            agent_settings=agent_settings,
            workspace=repository,
            directory=directory,
            environment=environment,
            attended=attended,
        ),
    )
    return StartedFix(failed=failed, thread=thread, directory=repository)


def _sweep(place: Path, now_ms: int) -> None:
    """Remove repositories that a command which was killed left a week ago."""
    for path in place.glob("*-*"):
        made = path.name.rpartition("-")[2]
        if made.isdecimal() and now_ms - int(made) > WEEK_MS:
            shutil.rmtree(path, ignore_errors=True)


def remove_directory(started: StartedFix) -> None:
    """Remove the repository of a fix whose thread has ended."""
    shutil.rmtree(started.directory, ignore_errors=True)


def result_of(records: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Return the result of an ended thread; empty without one."""
    end: Mapping[str, Any] = next((one for one in reversed(records) if "end" in one), {})
    result = end.get("result")
    return result if isinstance(result, Mapping) else {}
