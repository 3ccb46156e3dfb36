"""Agent kinds by name, each imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from uncaged_engine.door.agents import Agent, AgentKind
from uncaged_engine.services import entry_points as plugins

__all__ = ["Factory", "factory_of", "is_kind", "kind_of", "kinds", "own_kinds"]

Factory = Callable[[Mapping[str, object]], Agent]
"""Makes an agent from its settings; UsageError names a setting that is wrong."""


def factory_of(kind: str) -> Factory:
    """Return the factory of *kind*; NotFoundError has the nearest kinds."""
    return cast("Factory", plugins.find(kind, group=plugins.AGENTS))


def kind_of(kind: str) -> type[AgentKind]:
    """Return the class of *kind*, or `AgentKind` with its defaults for a factory that is no such
    class; as `factory_of` it may raise.
    """
    factory = factory_of(kind)
    return factory if isinstance(factory, type) and issubclass(factory, AgentKind) else AgentKind


def is_kind(name: str) -> bool:
    """Return whether *name* is a kind of agent."""
    return plugins.is_known(name, group=plugins.AGENTS)


def kinds() -> tuple[str, ...]:
    """Return all kinds of agents that are installed here."""
    return plugins.names(group=plugins.AGENTS)


def own_kinds() -> tuple[str, ...]:
    """Return the kinds of agents that come with this distribution."""
    return tuple(plugins.ours(plugins.AGENTS))
