"""Rights of the agents that answer for a flow's roles, the same for each kind of agent.

``tools`` lists the only tools that an agent may use; without it, all are allowed. ``network``,
``sandbox`` and ``outside`` are keys beside it: none of them is a tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from . import shapes
from .errors import UsageError
from .names import parse_flow_name
from .records import dataclass

__all__ = [
    "ALL_FLOWS",
    "ALL_TOOLS",
    "TOOLS",
    "Rights",
]

TOOLS = ("list", "read", "search", "edit", "write", "run", "commit")
CHANGING = frozenset({"edit", "write", "commit"})
"""They change the workspace, so that a role that may only read it has none of them."""
FLOW_PREFIX = "flow:"
ALL_FLOWS = "*"
"""As a flow's name: all enabled flows that a person did not mark with ``--confirm``."""
EFFECT_PREFIX = "effect:"
"""Before an effect kind whose operations are tools, within the policy's limits for the kind."""
OUTSIDE = ("refuse", "ask")
KEYS = frozenset({"tools", "network", "sandbox", "outside"})

INSTEAD = {
    "execute": "'run'",
    "bash": "'run'",
    "shell": "'run'",
    "terminal": "'run'",
    "delete": "'write'",
    "move": "'write'",
    "grep": "'search'",
    "glob": "'list'",
    "network": '"network": True beside tools',
    "fetch": '"network": True beside tools',
    "web": '"network": True beside tools',
    "sandbox": '"sandbox": True beside tools',
    "ask": '"outside": "ask" beside tools',
}
"""What people write when they mean one of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of an agent.

    tools: None means all; flows are not among them. flows: by name, or `ALL_FLOWS`. effects: kinds
    whose operations are tools. sandbox:
    commands run in the sandbox, for each kind of agent. network: tools and sandboxed commands may
    use it. ask: access outside the workspace may be asked of a person.
    """

    tools: frozenset[str] | None = None
    flows: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    network: bool = False
    sandbox: bool = False
    ask: bool = False

    @classmethod
    def of(cls, limits: Mapping[str, object]) -> Rights:
        """Return the rights that a checked policy's ``role`` grants."""
        named = cast("Sequence[str] | None", limits.get("tools"))
        return cls(
            tools=None if named is None else frozenset(named).intersection(TOOLS),
            flows=tuple(
                word.removeprefix(FLOW_PREFIX)
                for word in named or ()
                if word.startswith(FLOW_PREFIX)
            ),
            effects=tuple(
                word.removeprefix(EFFECT_PREFIX)
                for word in named or ()
                if word.startswith(EFFECT_PREFIX)
            ),
            network=limits.get("network") is True,
            sandbox=limits.get("sandbox") is True,
            ask=limits.get("outside") == "ask",
        )

    def may(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    @property
    def is_narrowed(self) -> bool:
        """Tell whether any right is limited."""
        return self.tools is not None or self.sandbox

    def usable(self, *, writable: bool) -> tuple[str, ...]:
        """Return the tools that may be used in a workspace that is writable or read-only."""
        return tuple(
            tool for tool in TOOLS if self.may(tool) and (writable or tool not in CHANGING)
        )


ALL_TOOLS = Rights()
"""What a policy gives that says nothing about it."""


def tools_words(value: object, path: shapes.Path) -> None:
    """Refuse a word that is neither a tool nor a flow; the message names the nearest right word."""
    for index, word in enumerate(shapes.texts(value, path)):
        where = (*path, index)
        if word in TOOLS:
            continue
        if word.startswith(FLOW_PREFIX):
            name = word.removeprefix(FLOW_PREFIX)
            if name != ALL_FLOWS and not is_flow(name):
                raise shapes.ShapeError(
                    where,
                    f"{shapes.shown(word)} names no flow; a flow among the tools is written 'flow:top-stories'",
                )
            continue
        if word.startswith(EFFECT_PREFIX) and word.removeprefix(EFFECT_PREFIX).isidentifier():
            continue
        raise shapes.ShapeError(where, f"{shapes.shown(word)} is no tool; {_instead(word)}")


def _instead(word: str) -> str:
    if word.lower() in INSTEAD:
        return f"did you mean {INSTEAD[word.lower()]}?"
    from difflib import get_close_matches  # only a slip of the pen pays for it

    near = get_close_matches(word.lower(), TOOLS, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    flow = f", and a flow is written {FLOW_PREFIX + word!r}" if is_flow(word) else ""
    return f"tools are {', '.join(TOOLS)}{flow}"


def is_flow(name: str) -> bool:
    try:
        parse_flow_name(name)
    except UsageError:
        return False
    return True


def first_sentence(limits: Mapping[str, object]) -> str:
    """Return the end of the first sentence about a role's limits: its narrowed rights."""
    rights = Rights.of(limits)
    words = "" if rights.tools is None else f"; tools: {_tools(limits)}"
    return words + ("; commands: in the sandbox alone" if rights.sandbox else "")


def widened(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each right that agents have by *after* and did not have by *before*."""
    old, new = Rights.of(before), Rights.of(after)
    if new.tools is None and old.tools is not None:
        yield f"role: its agents may now use all tools (before: {_tools(before)})"
    elif (
        old.tools is not None
        and new.tools is not None
        and (more := [tool for tool in TOOLS if tool in new.tools - old.tools])
    ):
        yield f"role: its agents may now also use {', '.join(more)} (before: {_tools(before)})"
    more = [flow for flow in new.flows if flow not in old.flows]
    if ALL_FLOWS in more:
        yield "role: its agents may start all enabled flows that are not marked with --confirm"
    elif more and ALL_FLOWS not in old.flows:
        yield f"role: its agents may start the flow{'s' if len(more) > 1 else ''} {', '.join(more)}"
    kinds = [kind for kind in new.effects if kind not in old.effects]
    if kinds:
        yield f"role: its agents decide themselves what they do with: {', '.join(kinds)}"
    if new.network and not old.network:
        yield "role: its agents' tools and commands may use the network"
    if old.sandbox and not new.sandbox:
        yield "role: commands of coding agents no longer have to run in the sandbox"
    if new.ask and not old.ask:
        yield "role: its agents may ask you for what lies outside the workspace"


def _tools(limits: Mapping[str, object]) -> str:
    return (
        ", ".join(tool for tool in TOOLS if tool in cast("Sequence[str]", limits["tools"]))
        or "none"
    )
