"""The verb `resume`: continues a thread from its journal, and follows it."""

from __future__ import annotations

from typing import Any

import click
from uncaged_bundles.errors import UsageError

from ..display.started import follow_or_print
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
    thread_argument,
    verbose_option,
    workspace_options,
)
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@thread_argument
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
@shared_option
@json_option
def command(
    *,
    thread: str,
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
    from uncaged_engine.api import RunOptions

    engine = open_engine()
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
