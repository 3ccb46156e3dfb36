"""The verb `compare`: runs forks of one prefix side by side and shows how they differ."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import UncagedError, UsageError, without_thread

from ..display import json_output
from ..display.comparison import comparison_document, show_comparison
from ..display.output import next_step, note
from ..entry import EXIT_INTERRUPTED
from ..inputs.completion import complete_agents
from ..inputs.consent import binding_asker
from ..inputs.options import (
    agent_settings_option,
    json_option,
    limit_options,
    parse_agent_settings,
    parse_agents,
    thread_argument,
)
from ..inputs.parameters import read_json
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_agents.changes import FileChanges
    from uncaged_capture.comparing import ForkComparison, ForkVariant, Side
    from uncaged_engine.api import Engine, Event

MIN_SIDES = 2
MAX_SIDES = 8
SHOWN_COLUMNS = 120


@click.command()
@thread_argument
@click.option(
    "--at", type=click.IntRange(min=0), metavar="N", required=True, help="Keep N steps in each."
)
@click.option(
    "--set",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A fork with the JSON of FILE as outcome of the last kept step. Two to eight.",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[ROLE=]NAME",
    shell_complete=complete_agents,
    help="A fork with this agent for all roles, or for one role. Two to eight.",
)
@agent_settings_option
@limit_options
@click.option(
    "--accept",
    is_flag=True,
    help="Accept what forks of an imported thread would use on this machine, without asking.",
)
@shared_option
@json_option
def command(
    *,
    thread: str,
    at: int,
    files: tuple[Path, ...],
    agents: tuple[str, ...],
    agent_settings: tuple[str, ...],
    accept: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Fork THREAD after step N once for each --set, or once for each --agent, run the forks side by
    side, and compare what they did, their time, tokens, cost, results and files.

    Ctrl-C ends all forks. The exit code is that of the first fork without success.

    \b
    Examples:
      uncaged-workflow compare latest --at 3 --set a.json --set b.json
      uncaged-workflow compare latest --at 1 --agent claude --agent coder=codex
    """
    from uncaged_capture.comparing import compare_sides, end_sides, run_sides, start_sides
    from uncaged_engine.api import RunOptions
    from uncaged_engine.threads.ending import ending_of

    engine = open_engine()
    source = engine.thread(thread).summary
    if agents and not engine.bundle(source.hash).descriptor.asked_roles:
        raise UsageError(f"flow {source.name!r} asks no agent; --set compares outcomes of a step")
    variants = variants_of(files, agents)
    sides = start_sides(
        engine,
        source.thread_id,
        variants,
        at=at,
        options=RunOptions(**options, agent_settings=parse_agent_settings(agent_settings)),
        accept=binding_asker(thread, accept=accept),
    )
    try:
        for side in sides:
            note(f"{side.label}: thread {side.thread_id}")
        run_sides(engine, sides, (lambda *_: None) if as_json else reporter(sides, at))
    except KeyboardInterrupt:
        end_sides(engine, sides)
        note("\nended: ", ", ".join(side.thread_id for side in sides))
        for side in sides:
            next_step(f"uncaged-workflow thread {side.thread_id}")
        return EXIT_INTERRUPTED
    found = compare_sides(engine, sides, at)
    changes = changes_of(engine, found)
    if as_json:
        json_output.document(comparison_document(found, changes))
    else:
        show_comparison(found, changes)
    endings = (ending_of(view, engine.store, Path.cwd()) for view in found.views)
    return next((one.exit_code for one in endings if one.exit_code), 0)


def variants_of(files: Sequence[Path], agents: Sequence[str]) -> list[ForkVariant]:
    """Return the variants that the options name.

    Raises:
        UsageError: there are fewer than two, too many, or both kinds.
    """
    from uncaged_capture.comparing import ForkVariant
    from uncaged_engine.api import Replacement

    if files and agents:
        raise UsageError("name forks by --set or by --agent; the two exclude each other")
    labels = [str(file) for file in files] or list(agents)
    if not MIN_SIDES <= len(labels) <= MAX_SIDES:
        raise UsageError(
            f"name {MIN_SIDES} to {MAX_SIDES} of --set or of --agent; there {'is' if len(labels) == 1 else 'are'} {len(labels)}"
        )
    if len(set(labels)) < len(labels):
        raise UsageError("a fork is named twice; the forks would do the same")
    if files:
        return [
            ForkVariant(label=label, instead=Replacement(read_json(file)))
            for label, file in zip(labels, files, strict=True)
        ]
    return [ForkVariant(label=label, agents=parse_agents([label])) for label in labels]


def reporter(sides: Sequence[Side], kept: int) -> Callable[[Side, Event], None]:
    """Return a function that prints each finished step of a side as one line on standard error."""
    from uncaged_engine.threads.timeline import Timeline

    timelines = {side.thread_id: Timeline() for side in sides}
    printing = threading.Lock()

    def report(side: Side, event: Event) -> None:
        if event.kind != "record":
            return
        timeline = timelines[side.thread_id]
        row = timeline.add(event.body)
        if row is not None and row.mark in ("done", "failed") and timeline.steps > kept:
            with printing:
                words = shorten(f"{row.label}: {row.detail}", SHOWN_COLUMNS)
                note(f"{side.label}  {row.seq:>3}  {words}")

    return report


def changes_of(engine: Engine, found: ForkComparison) -> Mapping[str, FileChanges | str]:
    """Return by label how the files of each further side differ from those of the first, or why
    that is not known; empty without a workspace.
    """
    first, *others = zip(found.sides, found.views, strict=True)
    if "workspace" not in first[1].start:
        return {}
    from uncaged_agents.changes import changes_between

    changes: dict[str, FileChanges | str] = {}
    for side, view in others:
        try:
            changes[side.label] = changes_between(engine.store, first[1], view, os.environ)
        except UncagedError as exc:
            changes[side.label] = without_thread(exc)
    return changes
