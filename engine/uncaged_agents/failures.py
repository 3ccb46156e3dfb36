"""Failures of agents that are other programs: whether the service behind one is away for a while, judged by its message."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_engine.door.agents import AgentAway, AgentFailed
from uncaged_models.patience import is_outage


def agent_failure(message: str, words: str, more: Mapping[str, object]) -> AgentFailed:
    """Return the failure of an agent that ended with an error. words: its own message."""
    return AgentAway(message, more=more) if is_outage(words) else AgentFailed(message, more=more)
