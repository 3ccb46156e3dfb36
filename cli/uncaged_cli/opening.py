"""The first line about a thread says what runs, as which version, behind which sandbox, and who answers for its roles and why."""

from __future__ import annotations

from collections.abc import Mapping

from .clean import clean_line


def opening(start: Mapping[str, object]) -> str:
    """Return the first line for a start record."""
    parts = [f"{start.get('name')}@{start.get('hash')}", f"sandbox {start.get('sandbox') or 'not started'}"]
    if agents := agents_in_words(start.get("agents")):
        parts.append(agents)
    source = start.get("forkFrom")
    if isinstance(source, Mapping):
        parts.append(f"fork of {source.get('threadId')} at step {source.get('seq')}")
    return clean_line(f"thread {start.get('threadId')}: {', '.join(parts)}")


def agents_in_words(agents: object) -> str:
    """Return who answers for the roles: the default first, then the exceptions; nothing when no role has an agent."""
    if isinstance(agents, str):
        return f"agent {agents}"
    if not isinstance(agents, Mapping) or not agents:
        return ""
    default = _agent(agents.get("") or agents.get("default"))
    others = [f"{role} by {_agent(agent)}" for role, agent in agents.items() if role not in ("", "default", "reason", "why")]
    return ", ".join(part for part in (f"agent {default}" if default else "", *others) if part)


def _agent(agent: object) -> str:
    if isinstance(agent, Mapping):
        name = agent.get("name") or agent.get("agent")
        reason = agent.get("reason") or agent.get("why")
        return f"{name} ({reason})" if reason else str(name)
    return str(agent) if agent else ""
