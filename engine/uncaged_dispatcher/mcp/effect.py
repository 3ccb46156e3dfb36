"""The effect `mcp`: a call of a tool of an MCP server that the person configured.

``{"mcp": {"server", "tool", "arguments"?, "repeat"?, "timeout_s"?}}`` answers
``{"content": [part, …], "structured": object or null, "isError": bool}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from uncaged_bundles import shapes
from uncaged_bundles.clean import clean
from uncaged_bundles.limits import Limits, Names
from uncaged_bundles.records import dataclass, field
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import Seconds, read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void
from uncaged_engine.services.processes import MARK, kill_leftovers

from .client import McpCancelled, McpProblem
from .listings import mark_outdated
from .opening import ServerAccess

MAX_DEPTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLimits(Limits):
    """Limits of the kind. tools: ``SERVER/TOOL``; no others may be called."""

    meaning = "call tools of your MCP servers"
    tools: Names = ()

    @classmethod
    def needs(cls, limits: Mapping[str, object]) -> frozenset[str]:
        """Return the servers, which a worker has in its config."""
        return frozenset(server_need(tool.partition("/")[0]) for tool in cls.of(limits).tools)


def server_need(server: str) -> str:
    """Return what a worker with an MCP server of this name offers."""
    return f"mcp:{server}"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpBody:
    server: Annotated[str, shapes.filled]
    tool: Annotated[str, shapes.filled]
    arguments: Annotated[Mapping[str, Any], shapes.mapping] = field(default_factory=dict)
    repeat: bool = False
    timeout_s: Seconds = None


class McpHandler(Handler):
    kind = "mcp"
    limits = McpLimits
    recovery: Rule = "ask"
    answers: Mapping[str, object] = {
        "type": "object",
        "required": ["content", "structured", "isError"],
        "properties": {"content": {"type": "array"}, "isError": {"type": "boolean"}},
    }

    def rule(self, body: object, bundle: Bundle) -> Rule:
        """Return `repeat` for a tool that the person trusts and that changes nothing twice."""
        del bundle
        return "repeat" if isinstance(body, dict) and body.get("repeat") is True else "ask"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("mcp", McpBody, body)
        if isinstance(options, Failure):
            return options
        wanted = f"{options.server}/{options.tool}"
        allowed = McpLimits.of(context.bundle.descriptor.policy.limits.get("mcp", {})).tools
        if wanted not in allowed:
            return Failure.of(
                "policy", f'the policy does not allow this tool; add {wanted!r} to "mcp": "tools"'
            )
        access = ServerAccess(
            config=context.config,
            environment=context.environment,
            directory=context.directory,
            on_cancel=context.cancel.on_request,
            variables={MARK: context.key},
        )
        if context.attempt > 1:
            # a server that hangs outlives the worker that started it
            kill_leftovers(context.store.private(context.thread_id), context.key)
        limit_s = access.settings(options.server).timeout_s
        timeout_s = limit_s if options.timeout_s is None else min(options.timeout_s, limit_s)
        try:
            with access.open(options.server, timeout_s) as (client, redact):
                try:
                    result = redact(answer_of(client.call(options.tool, options.arguments)))
                finally:
                    if client.tools_changed:
                        mark_outdated(context.store, options.server)
        except McpCancelled:
            return Void(word="killed", message=f"killed while {wanted} was called")
        except McpProblem as exc:
            return Failure.of(exc.kind, str(exc))
        return Answer(fields={"outcome": result})


def answer_of(result: Mapping[str, Any]) -> dict[str, object]:
    """Return a tool's result with texts that a terminal can show.

    Raises:
        McpProblem: it is no result of a tool.
    """
    content = result.get("content", [])
    structured = result.get("structuredContent")
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise McpProblem("the MCP server's result has no list of content")
    if not isinstance(structured, dict | None):
        raise McpProblem("the MCP server's structured result is no object")
    parts: Sequence[Any] = _shown(content, 0)
    return {
        "content": parts,
        "structured": _shown(structured, 0),
        "isError": result.get("isError") is True,
    }


def _shown(value: Any, depth: int) -> Any:
    """Return JSON data with cleaned texts; numbers that JSON does not have become null."""
    if depth > MAX_DEPTH:
        raise McpProblem("the MCP server's result is nested too deeply")
    match value:
        case str():
            return clean(value)
        case list():
            return [_shown(item, depth + 1) for item in value]
        case dict():
            return {clean(key): _shown(item, depth + 1) for key, item in value.items()}
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
