"""A person is told, before a thread starts, how far each of its agents can be held to what the flow's policy allows a role.

Agents that use our tools are held to it. Other people's programs are held as far as they ask, or have options for it; all are told.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.rights import Rights

OURS = frozenset({"anthropic", "openai", "repair"})


def not_held(use: str, settings: Mapping[str, object], rights: Rights) -> str | None:
    """What an agent cannot be held to, in words; None when it can be, or there is nothing to hold it to."""
    if use in OURS or not rights.is_narrowed:
        return None
    limits = "tools and sandbox" if rights.tools is not None and rights.sandbox else "sandbox" if rights.tools is None else "tools"
    if use == "acp":
        return f"held to the policy's {limits} in what it asks of us"
    if use == "program" and rights.tools is not None and takes_tools(settings):
        return "held to the policy's tools by its own options" + (", not to the sandbox" if rights.sandbox else "")
    return f"told of the policy's {limits}, not held to it"


def takes_tools(settings: Mapping[str, object]) -> bool:
    """Whether a program has options that say which tools it may use, and a person has not put other ones in their place."""
    from .program.table import table

    row = table().get(str(settings.get("row")))
    return row is not None and bool(row.named) and "rights" not in settings
