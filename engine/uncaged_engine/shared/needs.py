"""Needs of a thread: names of what a worker must offer to drive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.validation.validate import Bundle

from .. import plugins
from ..effect_kinds import KNOWN

AGENT = "agent:"
"""Before the kind of an agent, or the program that plays one."""


def needs_of(bundle: Bundle, start: Mapping[str, Any]) -> frozenset[str]:
    """Return what a thread needs: what the effects of its policy do (`Limits.needs`), and
    ``agent:KIND`` for each agent in its start record that not every machine has; ``agent:PROGRAM``
    for a coding program.
    """
    policy = bundle.descriptor.policy.limits
    effects = (KNOWN[kind].needs(limits) for kind, limits in policy.items())
    return frozenset(_agents(start.get("agents") or {})).union(*effects)


def agent_need(use: str, settings: Mapping[str, Any]) -> str:
    """Return the need of an agent of the kind *use*. settings: its own; ``row`` names a program."""
    return f"{AGENT}{settings.get('row') or use}"


def is_everywhere(use: str) -> bool:
    """Tell whether each machine with this engine has agents of a kind: they need no key, and come
    with it.
    """
    if use not in plugins.ours(plugins.AGENTS):
        return False
    try:
        return not getattr(plugins.find(use, group=plugins.AGENTS), "needs", "")
    except UncagedError:
        return False  # a library of it is not installed here


def _agents(recorded: Mapping[str, Any]) -> Iterator[str]:
    choices = [recorded.get("default"), *(recorded.get("roles") or {}).values()]
    for choice in choices:
        if choice:
            use, settings = str(choice["use"]), choice.get("settings") or {}
            if "row" in settings or not is_everywhere(use):
                yield agent_need(use, settings)
