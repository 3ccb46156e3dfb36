"""Every kind of agent is found by its name: ours in one literal table, others' through entry points; imported only when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from uncaged_engine import plugins
from uncaged_engine.door.agents import Agent

__all__ = ["BUILT_IN", "GROUP", "Factory", "factory_of", "kinds"]

GROUP = "uncaged_workflow.agents"

BUILT_IN = {
    "acp": "uncaged_agents.acp.agent:AcpAgent",
    "program": "uncaged_agents.program.agent:ProgramAgent",
    "anthropic": "uncaged_agents.anthropic:AnthropicAgent",
    "openai": "uncaged_agents.openai:OpenAIAgent",
    "command": "uncaged_agents.command:CommandAgent",
    "scripted": "uncaged_agents.scripted:ScriptedAgent",
    "person": "uncaged_agents.person:PersonAgent",
    "repair": "uncaged_repair.agent:RepairAgent",
}

Factory = Callable[[Mapping[str, object]], Agent]
"""Makes an agent from its settings; UsageError names a setting that is wrong."""


def factory_of(kind: str) -> Factory:
    """Return the factory of *kind*; NotFoundError names the nearest kinds."""
    return cast("Factory", plugins.find(kind, built_in=BUILT_IN, group=GROUP))


def kinds() -> tuple[str, ...]:
    """Return all kinds of agents that are installed here."""
    return plugins.names(built_in=BUILT_IN, group=GROUP)
