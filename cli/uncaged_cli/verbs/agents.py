"""`agents` lists who could answer for roles here, and why the default is who it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from ..display import jsonout
from ..display.screen import Piece, Styled, result, table, text_width
from ..display.table import render
from ..given.arguments import json_option
from ..session import open_engine

if TYPE_CHECKING:
    from uncaged_engine.settings.config import AgentSettings, Config
    from uncaged_models.settings import Wire

HEADERS = ("agent", "uses", "here", "what it is")


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the agents that are configured, those that are found on this machine, and which one is the default and why."""
    from uncaged_agents.choose import choose

    engine = open_engine()
    config = engine.config
    chosen = choose(config, flow="", role=None, asked={}, environment=os.environ, directory=Path.cwd())
    rows = found(config)
    if as_json:
        agents = [dict(zip(("name", "use", "here", "about"), row, strict=True)) for row in rows]
        jsonout.document({"default": chosen.recorded(), "agents": agents})
        return
    result("default: ", Styled(chosen.name, "cyan"), f" ({chosen.reason})")
    shown: list[list[Piece]] = [[Styled(name, "cyan"), use, here, about] for name, use, here, about in rows]
    table(render(HEADERS, shown, width=text_width(sys.stdout)))


def found(config: Config) -> list[tuple[str, str, str, str]]:
    """Configured agents, known coding agents, and the kinds that need no program."""
    from uncaged_agents.consent import present
    from uncaged_agents.kinds import kinds, own_kinds
    from uncaged_agents.program.table import table

    here = {row.name for row in present(os.environ)}
    configured = [(name, agent.use, "configured", about(agent)) for name, agent in config.agents.items()]
    known = [(row.name, row.use, "yes" if row.name in here else "no", f"{row.title}; {row.install}") for row in table().values()]
    built_in = [
        ("repair", "repair", "yes", "no model; searches small edits until the repository's own failing test passes"),
        ("person", "person", "yes", "you, with `answer`"),
        ("anthropic", "anthropic", "with a key", "a Claude model; secret:ANTHROPIC_API_KEY"),
        ("openai", "openai", "with a key", "any OpenAI-compatible endpoint; secret:OPENAI_API_KEY"),
    ]
    own = own_kinds()
    ours = {*table(), *own}
    others = [(name, name, "yes", "of another distribution") for name in kinds() if name not in ours]
    return [*configured, *known, *(row for row in built_in if row[1] in own), *others]


def about(agent: AgentSettings) -> str:
    """What an agent of the config comes to: its model, its product, its program or its file."""
    from uncaged_agents.program.table import table
    from uncaged_models.settings import MODELS

    settings = agent.settings
    if agent.use in MODELS:
        model = str(settings.get("model", MODELS.get(cast("Wire", agent.use))))
        return f"{model} at {settings['baseUrl']}" if "baseUrl" in settings else model
    row, argv = table().get(str(settings.get("row"))), settings.get("argv")
    if row is not None:
        return row.title
    return str(argv[0]) if isinstance(argv, list) and argv else str(settings.get("file", ""))
