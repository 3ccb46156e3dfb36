"""The verb `fork`: starts a new thread from a step of an existing one, which is not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from uncaged_bundles.errors import UsageError

from ..display.started import follow_or_print
from ..inputs.completion import complete_roles, complete_versions
from ..inputs.consent import binding_asker, is_attended
from ..inputs.options import (
    agent_option,
    agent_settings_option,
    detach_option,
    json_option,
    limit_options,
    parse_agent_settings,
    parse_agents,
    thread_argument,
    verbose_option,
    workspace_options,
)
from ..inputs.parameters import read_json
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@thread_argument
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="Keep N steps.")
@click.option(
    "--from-role",
    metavar="ROLE",
    shell_complete=complete_roles,
    help="Keep the steps up to and including the first one of ROLE.",
)
@click.option("--last", is_flag=True, help="With --from-role: up to and including the last one.")
@click.option(
    "--on",
    metavar="HASH|NAME|head",
    shell_complete=complete_versions,
    help="Run another version instead of the thread's own.",
)
@click.option(
    "--set",
    "instead",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A JSON file that replaces the outcome of the last kept step.",
)
@limit_options
@agent_option
@agent_settings_option
@workspace_options
@click.option(
    "--accept",
    is_flag=True,
    help="Accept what a fork of an imported thread would use on this machine, without asking.",
)
@verbose_option
@detach_option
@shared_option
@json_option
def command(
    *,
    thread: str,
    at: int | None,
    from_role: str | None,
    last: bool,
    on: str | None,
    instead: Path | None,
    agents: tuple[str, ...],
    agent_settings: tuple[str, ...],
    accept: bool,
    verbose: bool,
    detach: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Start a new thread from the steps of THREAD and follow it. Without --at or --from-role, all
    steps but the last are kept.

    A fork of an imported thread is bound to this machine as by `resume`; --workspace, --link and
    --test-command are only for such a fork.

    \b
    Examples:
      uncaged-workflow fork latest --at 2                    repeat from step 3, its files restored
      uncaged-workflow fork latest --from-role planner       keep the plan, repeat the rest
      uncaged-workflow fork latest --at 3 --on head          continue on the current version
      uncaged-workflow fork latest --at 3 --set answer.json  replace the outcome of step 3
    """
    from uncaged_engine.api import Cut, Replacement, RunOptions

    if at is not None and from_role is not None:
        raise UsageError("--at and --from-role exclude each other")
    if last and from_role is None:
        raise UsageError("--last needs --from-role ROLE")
    engine = open_engine()
    thread_id = engine.fork(
        thread,
        cut=Cut(at=at, role=from_role, last=last),
        on=on,
        instead=None if instead is None else Replacement(read_json(instead)),
        options=RunOptions(
            **options,
            agents=parse_agents(agents),
            agent_settings=parse_agent_settings(agent_settings),
            attended=is_attended(detach=detach, as_json=as_json),
        ),
        accept=binding_asker(thread, accept=accept),
    )
    return follow_or_print(engine, thread_id, detach=detach, as_json=as_json, verbose=verbose)
