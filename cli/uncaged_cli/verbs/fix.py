"""The verb `fix`: proposes a new version of a flow that failed, with its evidence."""

from __future__ import annotations

import click

from ..fixing import fix_thread
from ..inputs.options import (
    agent_option,
    agent_settings_option,
    json_option,
    parse_agent_settings,
    parse_agents,
    thread_argument,
)
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@thread_argument
@agent_option
@agent_settings_option
@shared_option
@json_option
def command(
    *, thread: str, agents: tuple[str, ...], agent_settings: tuple[str, ...], as_json: bool
) -> int:
    """Propose a new version of the flow that failed in THREAD, with its evidence.

    Without --agent, no model is asked: known kinds of failures are fixed, if exactly one change is
    likely. With an agent, it diagnoses and changes the flow in a scratch repository. Either way the
    new version is replayed and tried before it is proposed, and nothing changes before `proposal
    accept`. The exit code is 3 if nothing is proposed, and 1 if the thread cannot be fixed: it did
    not fail, or its flow has another version by now or no source in the store.

    \b
    Examples:
      uncaged-workflow fix latest
      uncaged-workflow fix latest --agent claude
    """
    return fix_thread(
        open_engine(),
        thread,
        agents=parse_agents(agents),
        agent_settings=parse_agent_settings(agent_settings),
        as_json=as_json,
    )
