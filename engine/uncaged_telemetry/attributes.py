"""Names and attributes of spans, by OpenTelemetry's conventions where they have one.

Attributes hold names, numbers and hosts. Texts of people, models and tools are only in those that
`content_of_turn` and `content_of_call` return.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from opentelemetry.trace import SpanKind
from uncaged_engine.door.observing import ModelTurn, ObservedCall, ObservedEffect, ObservedThread
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait

from .spans import Attribute

Attributes = dict[str, Attribute]
OPERATION = "gen_ai.operation.name"
USAGE: Mapping[str, str] = {
    "inputTokens": "gen_ai.usage.input_tokens",
    "outputTokens": "gen_ai.usage.output_tokens",
    "cachedTokens": "gen_ai.usage.cache_read.input_tokens",
    "storedTokens": "gen_ai.usage.cache_creation.input_tokens",
    "cost": "uncaged.cost.usd",
    "turns": "uncaged.turns",
}
"""Attributes of a usage's fields."""


def thread_name(thread: ObservedThread) -> str:
    """Return the name of a thread's span."""
    operation = "invoke_workflow" if thread.has_roles else "flow"
    return f"{operation} {thread.start.get('name')}"


def thread_attributes(thread: ObservedThread) -> Attributes:
    """Return the attributes of a thread's span, but those of its end."""
    name = str(thread.start.get("name"))
    found: Attributes = {
        "uncaged.thread.id": thread.thread_id,
        "uncaged.flow.name": name,
        "uncaged.flow.hash": thread.hash,
        "gen_ai.conversation.id": thread.thread_id,
    }
    if thread.has_roles:
        found |= {OPERATION: "invoke_workflow", "gen_ai.workflow.name": name}
    return found


def end_attributes(word: str, end: Mapping[str, object] | None, steps: int) -> Attributes:
    """Return the attributes of a thread's end."""
    found: Attributes = {"uncaged.thread.status": word, "uncaged.thread.steps": steps}
    result = None if end is None else end.get("result")
    if isinstance(result, Mapping) and isinstance(result.get("success"), bool):
        found["uncaged.thread.success"] = result["success"]
    limit = None if end is None else end.get("limit")
    if isinstance(limit, str):
        found["uncaged.thread.limit"] = limit
    return found | usage_attributes({} if end is None else end.get("usage"))


def end_error(word: str, end: Mapping[str, object] | None) -> str:
    """Return the type of the error with which a thread ended; "" for a success."""
    if word == "completed":
        result = None if end is None else end.get("result")
        failed = isinstance(result, Mapping) and result.get("success") is False
        return "unsuccessful" if failed else ""
    error = None if end is None else end.get("error")
    return str(error.get("kind", word)) if isinstance(error, Mapping) else word


def step_name(effect: ObservedEffect) -> str:
    """Return the name of the span of a step."""
    body = effect.body if isinstance(effect.body, Mapping) else {}
    match effect.kind:
        case "role":
            return f"invoke_agent {body.get('name')}"
        case "http":
            return f"http {str(body.get('method', 'GET')).upper()}"
        case "flow":
            return f"flow {body.get('name')}"
        case _:
            return effect.kind


def step_kind(effect: ObservedEffect) -> SpanKind:
    """Return the span kind of a step."""
    return SpanKind.CLIENT if effect.kind in ("http", "fetch", "search") else SpanKind.INTERNAL


def step_attributes(effect: ObservedEffect) -> Attributes:
    """Return the attributes of a step, but those of its outcome."""
    found: Attributes = {"uncaged.step.seq": effect.seq, "uncaged.effect.kind": effect.kind}
    if effect.part is not None:
        found["uncaged.step.part"] = effect.part
    body = effect.body if isinstance(effect.body, Mapping) else {}
    match effect.kind:
        case "role":
            found |= {OPERATION: "invoke_agent", "gen_ai.agent.name": str(body.get("name"))}
        case "http" | "fetch":
            if effect.kind == "http":
                found["http.request.method"] = str(body.get("method", "GET")).upper()
            found |= server_attributes(str(body.get("url", "")))
        case "flow":
            if effect.child is not None:
                found["uncaged.child.thread.id"] = effect.child
        case _:
            pass
    return found


def outcome_attributes(outcome: Outcome) -> Attributes:
    """Return the attributes of an outcome."""
    found = usage_attributes(usage_of(outcome))
    by: object = None
    match outcome:
        case Answer():
            value = outcome.fields.get("outcome")
            status = value.get("status") if isinstance(value, Mapping) else None
            if isinstance(status, int):
                found["http.response.status_code"] = status
            by = outcome.fields.get("by")
        case Failure():
            by = outcome.error.get("by")
        case Wait():
            found["uncaged.waits"] = True
        case Void():
            pass
    if isinstance(by, str):
        found["uncaged.agent"] = by
    return found


def outcome_error(outcome: Outcome) -> tuple[str, str]:
    """Return the type and the message of an outcome's error; two empty texts for an answer."""
    match outcome:
        case Answer() | Wait():
            return "", ""
        case Failure():
            return str(outcome.error.get("kind", "effect")), str(outcome.error.get("message", ""))
        case Void():
            return outcome.word, outcome.message


def usage_of(outcome: Outcome) -> Mapping[str, object]:
    """Return the usage of an outcome; empty without one."""
    match outcome:
        case Answer():
            usage = outcome.fields.get("usage")
        case Failure():
            usage = outcome.error.get("usage")
        case Void():
            usage = outcome.more.get("usage")
        case Wait():
            usage = None
    return usage if isinstance(usage, Mapping) else {}


def usage_attributes(usage: object) -> Attributes:
    """Return the attributes of a usage."""
    if not isinstance(usage, Mapping):
        return {}
    found: Attributes = {
        attribute: value
        for name, attribute in USAGE.items()
        if isinstance(value := usage.get(name), int | float) and not isinstance(value, bool)
    }
    if isinstance(model := usage.get("model"), str):
        found["gen_ai.request.model"] = model
    return found


def turn_attributes(turn: ModelTurn) -> Attributes:
    """Return the attributes of a model's turn."""
    return {
        OPERATION: "chat",
        "gen_ai.provider.name": turn.provider,
        "gen_ai.request.model": turn.model,
        **server_attributes(turn.address),
        **({"gen_ai.response.finish_reasons": [turn.stop]} if turn.stop else {}),
        **usage_attributes(turn.usage),
    }


def call_attributes(call: ObservedCall) -> Attributes:
    """Return the attributes of a tool call."""
    return {
        OPERATION: "execute_tool",
        "gen_ai.tool.name": tool_name(call),
        "gen_ai.tool.type": "function",
    }


def tool_name(call: ObservedCall) -> str:
    """Return the name of a tool: the first word, since some agents' protocols have a title with
    arguments instead.
    """
    return (call.tool.split() or [""])[0]


def content_of_turn(turn: ModelTurn, redact: Callable[[object], object]) -> Attributes:
    """Return the attributes with the conversation of a turn."""
    content = turn.content()
    found: Attributes = {
        f"gen_ai.{name}.messages": _json(redact(content[name]))
        for name in ("input", "output")
        if name in content
    }
    if content.get("system"):
        system = [{"type": "text", "content": content["system"]}]
        found["gen_ai.system_instructions"] = _json(redact(system))
    return found


def content_of_call(call: ObservedCall, redact: Callable[[object], object]) -> Attributes:
    """Return the attributes with the arguments and the result of a tool call."""
    found: Attributes = {"gen_ai.tool.call.arguments": _json(redact(call.arguments))}
    if call.result is not None:
        found["gen_ai.tool.call.result"] = str(redact(call.result))
    return found


def server_attributes(url: str) -> Attributes:
    """Return the host and the port of an address, and nothing else of it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    if not host:
        return {}
    return {"server.address": host, **({"server.port": port} if port is not None else {})}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
