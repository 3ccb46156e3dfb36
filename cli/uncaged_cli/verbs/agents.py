"""The verb `agents`: the agents of this machine, and the default with its reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UncagedError

from ..display import json_output
from ..display.output import Piece, Styled, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.settings.config import AgentSettings, Config

HEADERS = ("agent", "uses", "available", "description")


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the configured agents and the known agents on this machine, and the default agent with
    the reason.
    """
    from uncaged_agents.choose import default_agent

    engine = open_engine(of_machine=True)
    config = engine.config
    chosen = default_agent(config, os.environ, Path.cwd())
    rows = agent_rows(config)
    if as_json:
        agents = [dict(zip(("name", "use", "here", "about"), row, strict=True)) for row in rows]
        json_output.document({"default": chosen.recorded(), "agents": agents})
        return
    result("default: ", Styled(chosen.name, "cyan"), f" ({chosen.reason})")
    shown: list[list[Piece]] = [
        [Styled(name, "cyan"), use, here, about] for name, use, here, about in rows
    ]
    table(render(HEADERS, shown, width=text_width(sys.stdout)))


def agent_rows(config: Config) -> list[tuple[str, str, str, str]]:
    """Return the rows of configured agents, known coding agents, and the kinds that need no
    program.
    """
    from uncaged_agents.consent import installed_programs
    from uncaged_agents.kinds import kinds
    from uncaged_agents.program.table import table

    here = {row.name for row in installed_programs(os.environ)}
    configured = [
        (name, agent.use, "configured", about(agent)) for name, agent in config.agents.items()
    ]
    known = [
        (row.name, row.use, "yes" if row.name in here else "no", f"{row.title}; {row.install}")
        for row in table().values()
    ]
    by_kind = [kind_row(name) for name in kinds() if name not in table()]
    return [*configured, *known, *(row for row in by_kind if row[-1])]


def kind_row(name: str) -> tuple[str, str, str, str]:
    """Return the row of an agent kind; the last field is empty if the kind needs settings."""
    from uncaged_agents.kinds import kind_of

    try:
        kind = kind_of(name)
    except UncagedError as problem:  # registered by another distribution, and broken
        return name, name, "no", str(problem)
    return name, name, f"with {kind.needs}" if kind.needs else "yes", kind.about


def about(agent: AgentSettings) -> str:
    """Describe an agent of the config by its model, product, program or file."""
    from uncaged_agents.kinds import kind_of

    try:
        return kind_of(agent.use).describe(agent.settings)
    except UncagedError as problem:  # an unknown or broken kind
        return str(problem)
