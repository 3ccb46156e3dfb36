"""Tool calls of a trace that a policy withholds from the agents of roles."""

from __future__ import annotations

from uncaged_bundles.rights import TOOLS, Rights
from uncaged_engine.door.past import PastEffect

from .request import missing_effect, rights_of, workspace_level

__all__ = ["refused_call"]


def refused_call(past: PastEffect) -> str | None:
    """Return the refusal of the step, or of the first call whose tool the policy does not give;
    None without one.

    Only the engine's own tools and those of effects are known by name; an ACP agent or a coding
    program names its own.
    """
    if (missing := missing_effect(past.bundle)) is not None:
        return f"role: {missing}"
    rights, level = rights_of(past.bundle), workspace_level(past.bundle)
    usable = rights.usable(writable=level == "write") if level != "none" else ()
    lost = [kind for kind in Rights.of(past.former_limits).effects if kind not in rights.effects]
    for call in past.calls:
        tool = str(call.get("tool"))
        if tool in TOOLS and tool not in usable:
            return f"role: its agent used the tool {tool!r}; the policy gives it: {', '.join(usable) or 'none'}"
        kind = next((kind for kind in lost if tool.startswith(f"{kind}_")), None)
        if kind is not None:
            return f"role: its agent used the tool {tool!r}; the policy has no 'effect:{kind}' among its tools"
    return None
