"""Enabled flows as tools of a model, under names that every model's endpoint accepts; a call runs a
thread.

from uncaged_tools.flows import call, tools

for tool in tools(engine):
    print(tool.name, tool.description, tool.schema)
called = call(engine, "top-stories", {"limit": "3"})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.registry import KNOWN

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, Event, RunOptions

__all__ = [
    "FORMATS",
    "FlowResult",
    "FlowTool",
    "Format",
    "call",
    "tool_document",
    "tools",
    "wait",
]

LONGEST_NAME = 64
PROMPT = "prompt"
Format = Literal["anthropic", "openai", "mcp"]
FORMATS: tuple[Format, ...] = get_args(Format)
_READS_PROMPT = re.compile(rb"""\b(\w+)(?:\[["']prompt["']\]|\.get\(["']prompt["'])""")
_INPUT = re.compile(rb"^def run\(\s*(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTool:
    """Description of a flow for a model. schema: JSON Schema of an object. prompt: the arguments
    hold the prompt as well.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    flow: str
    hash: BundleHash
    prompt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """Result of a call.

    success: the thread completed, and its result does not say otherwise. direct: data is the raw
    value that the flow wants handed out as it is.
    """

    thread_id: ThreadId
    status: str
    success: bool
    message: str
    data: object
    direct: bool = False

    def document(self) -> dict[str, object]:
        """Return the result as JSON."""
        fields = {
            "threadId": self.thread_id,
            "status": self.status,
            "success": self.success,
            "message": self.message,
            "data": self.data,
        }
        return {**fields, "direct": True} if self.direct else fields


def tools(
    engine: Engine, *, reserved: Collection[str] = (), flows: Collection[str] | None = None
) -> list[FlowTool]:
    """Return the enabled flows that can be run, ordered by name.

    Args:
        reserved: names that are taken. flows: only these.
    """
    found: list[FlowTool] = []
    used_names = set(reserved)
    for flow in sorted(engine.registry.read().flows.values(), key=lambda flow: flow.name):
        if not flow.enabled or (flows is not None and flow.name not in flows):
            continue
        try:
            tool = tool_of(engine.store, flow.name, flow.hash)
        except UncagedError:
            continue  # one that is damaged, or made for an effect that is not here, hides no other
        if tool is not None:
            found.append(replace(tool, name=free_name(tool.name, used_names)))
            used_names.add(found[-1].name)
    return found


@lru_cache(maxsize=1024)
def tool_of(store: Store, flow: str, bundle_hash: BundleHash) -> FlowTool | None:
    """Return a flow as a tool; None if this engine cannot run it. A bundle never changes, so each
    hash is read once.
    """
    bundle = store.load_bundle(bundle_hash, KNOWN)
    if bundle.descriptor.raw.get("unsupported"):
        return None
    schema = bundle.descriptor.schema_for_models()
    properties = cast("dict[str, object]", schema["properties"])
    takes_prompt = PROMPT not in properties and reads_prompt(bundle.source)
    if takes_prompt:
        properties = {
            PROMPT: {"type": "string", "description": "The task, in words."},
            **properties,
        }
    return FlowTool(
        name=tool_name(flow, bundle_hash),
        description=bundle.descriptor.description or f"Run the flow {flow}.",
        schema={**schema, "properties": properties},
        flow=flow,
        hash=bundle_hash,
        prompt=takes_prompt,
    )


def reads_prompt(source: bytes) -> bool:
    """Return whether a bundle reads the prompt of its input, under the name that `run` has for it
    or the drivers have.
    """
    names = {b"input", *_INPUT.findall(source)}
    return any(name in names for name in _READS_PROMPT.findall(source))


def tool_name(text: str, bundle: BundleHash) -> str:
    """Return *text* as the name of a tool: lower-case letters, digits, ``_`` and ``-``, at most 64
    of them.
    """
    name = re.sub(r"[^a-z0-9_-]", "", re.sub(r"\s+", "_", text.strip().lower()))
    name = re.sub(r"_+", "_", name).strip("-_")[:LONGEST_NAME].strip("-_")
    return name or f"flow_{bundle.lower()}"


def free_name(name: str, used: Collection[str]) -> str:
    """Return *name*, with a number after it if it is in *used*."""
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name[: LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return free


def call(
    engine: Engine,
    name: str,
    arguments: Mapping[str, object],
    *,
    options: RunOptions | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_start: Callable[[ThreadId], None] | None = None,
) -> FlowResult:
    """Run a tool's flow until its thread stops.

    Args:
        name: a tool's name, or the flow's own. on_event: called with each event. on_start: called
            with the thread's id.
    Raises:
        NotFoundError, UsageError: no such tool, or arguments that it does not take; what
            `Engine.run` raises.
    """
    tool = find_tool(tools(engine), name)
    prompt, params = split(tool, arguments)
    thread = engine.run(tool.flow, prompt=prompt, params=params, options=options)
    if on_start is not None:
        on_start(thread)
    return wait(engine, thread, on_event)


def find_tool(among: Sequence[FlowTool], name: str) -> FlowTool:
    for tool in among:
        if name in (tool.name, tool.flow):
            return tool
    from difflib import get_close_matches

    near = get_close_matches(name, [tool.name for tool in among], n=3) or [
        tool.name for tool in among[:10]
    ]
    raise NotFoundError(
        f"there is no tool {name!r} (there are: {', '.join(near) or 'none'}); only enabled flows are tools"
    )


def split(tool: FlowTool, arguments: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the prompt and the parameters among the arguments of a call.

    Raises:
        UsageError: an argument that the tool does not have, such as a parameter that only a person
            may set.
    """
    strange = sorted(set(arguments) - set(tool.schema["properties"]))
    if strange:
        known = ", ".join(tool.schema["properties"]) or "none"
        raise UsageError(
            f"the tool {tool.name} has no argument {', '.join(map(repr, strange))}; it has: {known}"
        )
    params = dict(arguments)
    prompt = params.pop(PROMPT, "") if tool.prompt else ""
    if not isinstance(prompt, str):
        raise UsageError(f"the tool {tool.name}: prompt must be text, not {prompt!r}")
    return prompt, params


def wait(
    engine: Engine, thread: ThreadId, on_event: Callable[[Event], None] | None = None
) -> FlowResult:
    """Follow a thread until it stops and return its result."""
    status, message, end = "", "", None
    for event in engine.follow(thread):
        if on_event is not None:
            on_event(event)
        if event.kind == "record" and "end" in event.body:
            end = event.body
        elif event.kind == "status":
            status, message = str(event.body["status"]), str(event.body["message"])
    return result_of_thread(thread, status, message, end)


def result_of_thread(
    thread: ThreadId, status: str, message: str, end: Mapping[str, Any] | None
) -> FlowResult:
    """Return the result of a thread that stopped. end: its end record, if it has one."""
    result = end.get("result") if status == "completed" and end is not None else None
    if status != "completed":
        return FlowResult(
            thread_id=thread,
            status=status,
            success=False,
            message=stop_message(thread, status, message),
            data=None,
        )
    if not isinstance(result, Mapping):
        return FlowResult(thread_id=thread, status=status, success=True, message="", data=result)
    success, text, data = (
        result.get("success") is not False,
        str(result.get("message") or ""),
        result.get("data"),
    )
    direct = success and result.get("direct") is True
    if direct and isinstance(data, Mapping) and "directOutput" in data:
        data = data["directOutput"]
    return FlowResult(
        thread_id=thread, status=status, success=success, message=text, data=data, direct=direct
    )


def stop_message(thread: ThreadId, status: str, message: str) -> str:
    """Return the message for a thread that did not complete: its own, or the next command; for one
    that waits, both.
    """
    if status == "waiting":
        question = f": {message}" if message else ""
        return f"thread {thread} waits for a person{question}; see: uncaged-workflow thread {thread}, and answer it"
    return message or f"thread {thread} is {status}; see: uncaged-workflow thread {thread}"


def tool_document(tool: FlowTool, form: Format) -> dict[str, object]:
    """Return a tool in the form that a model's endpoint or an MCP client takes."""
    named: dict[str, object] = {"name": tool.name, "description": tool.description}
    match form:
        case "anthropic":
            return {**named, "input_schema": tool.schema}
        case "openai":
            return {"type": "function", "function": {**named, "parameters": tool.schema}}
        case "mcp":
            return {**named, "inputSchema": tool.schema}
