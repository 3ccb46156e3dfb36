"""Flows of the tools of an MCP server: their names, checked descriptions and bundles.

What a server says about its tools is text of a stranger. It is cleaned and limited, and it decides
nothing about what needs consent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from uncaged_bundles.builders.text.literal import write_constant
from uncaged_bundles.clean import clean, shorten
from uncaged_bundles.errors import BundleError, UsageError
from uncaged_bundles.names import MAX_NAME_CHARACTERS, FlowName, new_flow_name
from uncaged_bundles.records import dataclass
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.services.registry import KNOWN

from .schemas import SchemaRefused, parameters_of

if TYPE_CHECKING:
    from uncaged_engine.services.settings import McpServerSettings

MAX_TOOLS = 100
MAX_DESCRIPTION_CHARACTERS = 600
MAX_TITLE_CHARACTERS = 80
MAX_TOOL_NAME_CHARACTERS = 128
MAX_PROBLEMS = 20
_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_RUN = """

def run(input, options):
    effect = {"server": SERVER, "tool": TOOL, "arguments": input["params"], "repeat": REPEAT}
    answer = yield {"mcp": effect}
    texts = [part["text"] for part in answer["content"] if part.get("type") == "text"]
    text = "\\n".join(texts)
    data = answer["structured"]
    if data is None:
        data = text if len(texts) == len(answer["content"]) else answer["content"]
    success = not answer["isError"]
    message = " ".join(text.split())
    if len(message) > 200:
        message = message[:199] + "…"
    result = {"success": success, "message": message or "done", "data": data}
    if success and text:
        result["display"] = text
    return result
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFlow:
    """Flow of one tool. tool: its name at the server. trusted: it needs no consent."""

    name: FlowName
    tool: str
    bundle: Bundle
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFlows:
    """Flows of a server. problems: a sentence for each tool that was left out."""

    flows: tuple[ToolFlow, ...]
    problems: tuple[str, ...]


def flows_of(server: str, settings: McpServerSettings, tools: Iterable[object]) -> ToolFlows:
    """Return a flow for each tool that a server lists."""
    flows: dict[str, ToolFlow] = {}
    problems: list[str] = []
    listed = list(tools)
    if len(listed) > MAX_TOOLS:
        problems.append(f"it lists {len(listed)} tools; the first {MAX_TOOLS} are used")
    for tool in listed[:MAX_TOOLS]:
        name = tool.get("name") if isinstance(tool, dict) else None
        shown = shorten(name[:200], 60) if isinstance(name, str) else "?"
        try:
            flow = _flow(server, settings, tool)
        except (SchemaRefused, UsageError, BundleError) as exc:
            problems.append(f"the tool {shown!r} is left out: {shorten(str(exc), 300)}")
            continue
        if flow.name in flows:
            problems.append(
                f"the tool {shown!r} is left out: {flows[flow.name].tool!r} has the flow {flow.name!r}"
            )
            continue
        flows[flow.name] = flow
    return ToolFlows(flows=tuple(flows.values()), problems=tuple(problems[:MAX_PROBLEMS]))


def flow_name(server: str, tool: str) -> FlowName:
    """Return the name of a tool's flow: ``weather-get-forecast`` for ``getForecast``.

    Raises:
        UsageError: the tool's name has no letters or digits, or is too long.
    """
    words = _SEPARATORS.sub("-", _UPPER.sub("-", tool).lower()).strip("-")
    if not words:
        raise UsageError("its name has no letters or digits")
    name = f"{server}-{words}"
    if len(name) > MAX_NAME_CHARACTERS:
        raise UsageError(f"the name {name!r} has more than {MAX_NAME_CHARACTERS} characters")
    return new_flow_name(name)


def _flow(server: str, settings: McpServerSettings, tool: object) -> ToolFlow:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise SchemaRefused("it has no name")
    name = tool["name"]
    if len(name) > MAX_TOOL_NAME_CHARACTERS or clean(name) != name:
        raise SchemaRefused("its name is too long, or has characters that are not shown")
    trusted = settings.trusts(name)
    source = write_tool(server, tool, repeat=trusted and _is_repeatable(tool))
    # the schema was checked as a part of the tool
    bundle = read_bundle(source, KNOWN)
    return ToolFlow(name=flow_name(server, name), tool=name, bundle=bundle, trusted=trusted)


def write_tool(server: str, tool: Mapping[str, Any], *, repeat: bool) -> bytes:
    """Return the bundle of a tool. repeat: a call that a crash left open is made again."""
    name = tool["name"]
    title = tool.get("title")
    described = tool.get("description")
    text = shorten(described, MAX_DESCRIPTION_CHARACTERS) if isinstance(described, str) else ""
    descriptor = {
        "contract": 1,
        "name": flow_name(server, name),
        **(
            {"displayName": shorten(title, MAX_TITLE_CHARACTERS)}
            if isinstance(title, str) and title.strip()
            else {}
        ),
        "description": text or f"The tool {name} of the MCP server {server}.",
        "kind": "task",
        "pack": server,
        "parameters": parameters_of(tool.get("inputSchema", {})),
        "policy": {"mcp": {"tools": [f"{server}/{name}"]}},
    }
    constants = {"descriptor": descriptor, "SERVER": server, "TOOL": name, "REPEAT": repeat}
    lines = [write_constant(key, value) for key, value in constants.items()]
    return ("\n".join(lines) + "\n" + _RUN).encode()


def _is_repeatable(tool: Mapping[str, Any]) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, dict) and (
        hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
    )
