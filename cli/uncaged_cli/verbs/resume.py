"""The verb `resume`: continues a thread from its journal, and follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from uncaged_bundles.errors import UncagedError, UsageError

from ..display import json_output
from ..display.output import Styled, note, result
from ..display.started import follow_or_print
from ..inputs.completion import complete_threads
from ..inputs.consent import binding_asker, is_attended
from ..inputs.options import (
    agent_option,
    agent_settings_option,
    detach_option,
    json_option,
    limit_options,
    parse_agent_settings,
    parse_agents,
    screenshots_option,
    verbose_option,
    workspace_options,
)
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


@click.command()
@click.argument("thread", required=False, metavar="[THREAD]", shell_complete=complete_threads)
@click.option(
    "--due",
    is_flag=True,
    help="Continue all interrupted threads whose sleep has ended; for a timer.",
)
@limit_options
@screenshots_option
@click.option("--redo", is_flag=True, help="Repeat the effect that was begun and has no outcome.")
@click.option(
    "--skip", is_flag=True, help="Continue without the effect that was begun and has no outcome."
)
@click.option("--note", "remark", metavar="TEXT", help="A note for the next agent.")
@agent_option
@agent_settings_option
@workspace_options
@click.option(
    "--accept",
    is_flag=True,
    help="Accept what an imported thread would use on this machine, without asking.",
)
@verbose_option
@detach_option
@json_option
def command(
    *,
    thread: str | None,
    due: bool,
    redo: bool,
    skip: bool,
    remark: str | None,
    agents: tuple[str, ...],
    agent_settings: tuple[str, ...],
    accept: bool,
    verbose: bool,
    detach: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Continue a thread that was paused, interrupted or killed, or that reached a limit, and follow
    it.

    An imported thread is bound to this machine first: --agent, --workspace, --link and
    --test-command choose what it uses, as for `run`. The parts of the archive that are trusted
    and what the thread would use here are listed and must be accepted.
    """
    if redo and skip:
        raise UsageError("--redo and --skip exclude each other")
    if due == (thread is not None):
        raise UsageError("name a thread, or add --due")
    from uncaged_engine.api import RunOptions

    engine = open_engine()
    if thread is None:
        return resume_due(engine, as_json=as_json)
    before = engine.thread(thread)
    thread_id = before.summary.thread_id
    engine.resume(
        thread_id,
        redo=redo,
        skip=skip,
        note=remark,
        options=RunOptions(
            **options,
            agents=parse_agents(agents),
            agent_settings=parse_agent_settings(agent_settings),
            attended=is_attended(detach=detach, as_json=as_json),
        ),
        accept=binding_asker(thread_id, accept=accept),
    )
    return follow_or_print(
        engine,
        thread_id,
        detach=detach,
        as_json=as_json,
        verbose=verbose,
        known_records=len(before.records),
    )


def resume_due(engine: Engine, *, as_json: bool) -> int:
    """Resume every thread whose sleep has ended, without following; a failure does not stop the
    others.
    """
    resumed = []
    left = 0
    for thread_id in engine.due():
        try:
            resumed.append(engine.resume(thread_id))
        except UncagedError as exc:
            left += 1
            note(Styled("warning: ", "yellow"), f"thread {thread_id} was not resumed: {exc}")
    if as_json:
        json_output.document({"threadIds": resumed})
    else:
        for thread_id in resumed:
            result(thread_id)
    return 1 if left else 0
