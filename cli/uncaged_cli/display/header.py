"""Header line of a thread: flow, version, sandbox, and the agents of its roles with the reason for
each.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from uncaged_bundles.clean import clean_line


def header_line(start: Mapping[str, object]) -> str:
    """Return the header line for a start record."""
    parts = [f"{start.get('name')}@{start.get('hash')}"]
    if start.get("sandbox"):
        parts.append(f"sandbox {start['sandbox']}")
    if agents := describe_agents(start.get("agents")):
        parts.append(agents)
    imported = start.get("imported")
    if isinstance(imported, Mapping):
        parts.append(f"imported{'' if imported.get('bound') else ', not bound to this machine'}")
    source = start.get("forkFrom")
    if isinstance(source, Mapping):
        replaced = ", its outcome replaced" if source.get("instead") else ""
        parts.append(f"fork of {source.get('threadId')} at step {source.get('seq')}{replaced}")
    return clean_line(f"thread {start.get('threadId')}: {', '.join(parts)}")


def describe_agents(agents: object) -> str:
    """Return the agents of the roles with their reasons, the default first; empty if no role has
    one.
    """
    if not isinstance(agents, Mapping):
        return ""
    roles = agents.get("roles")
    words = [f"agent {_describe_agent(agents['default'])}"] if agents.get("default") else []
    words += (
        [f"{role} by {_describe_agent(agent)}" for role, agent in roles.items()]
        if isinstance(roles, Mapping)
        else []
    )
    return ", ".join(words)


def _describe_agent(agent: object) -> str:
    if not isinstance(agent, Mapping):
        return str(agent)
    why = [str(agent[key]) for key in ("reason", "limits") if agent.get(key)]
    options = agent.get("options")
    if isinstance(options, Mapping):
        why += [f"{key}={value}" for key, value in options.items()]
    name = " ".join([str(agent.get("name")), *_program_or_file(agent)])
    return f"{name} ({'; '.join(why)})" if why else name


def _program_or_file(agent: Mapping[str, object]) -> Iterator[str]:
    """Yield the program or file of an agent that was not chosen by name."""
    settings = agent.get("settings")
    if not isinstance(settings, Mapping) or agent.get("name") != agent.get("use"):
        return
    argv, file = settings.get("argv"), settings.get("file")
    if isinstance(argv, Sequence) and argv:
        yield shlex.quote(str(argv[0]))
    elif file is not None:
        yield shlex.quote(str(file))
