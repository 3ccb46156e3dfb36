"""Actions that a page's scripts register for agents, by the Web API ``document.modelContext``
(WebMCP). They are listed and called from a world of their own, which the page's scripts cannot
change; names, descriptions and results are the page's, so they are data.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from uncaged_bundles.records import dataclass

from ..problems import BrowserProblem

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

__all__ = ["CallResult", "RegisteredAction", "call_action", "list_actions"]

WORLD = "uncaged-workflow"
MAX_ACTIONS, MAX_DESCRIPTION, MAX_PARAMETERS = 100, 1_000, 40
MAX_SCHEMA_CHARACTERS = 20_000
MAX_RESULT_CHARACTERS = 100_000
LIST_S = 3.0
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
COPIED = ("type", "title", "description", "format", "minimum", "maximum", "maxLength")
FIND = """const context = document.modelContext || navigator.modelContext;
  const tools = context && context.getTools ? await context.getTools() : [];
  const own = [...tools].filter(tool => !('window' in tool) || tool.window === window);"""
LIST = f"""(async () => {{ {FIND}
  const text = (value, most) => String(value ?? '').slice(0, most);
  const schema = value => {{
    const written = typeof value === 'string' ? value : JSON.stringify(value ?? null);
    return written.length > {MAX_SCHEMA_CHARACTERS} ? '' : written;
  }};
  return own.slice(0, {MAX_ACTIONS}).map(tool => ({{name: text(tool.name, 200),
    description: text(tool.description, {MAX_DESCRIPTION}), schema: schema(tool.inputSchema)}}));
}})()"""
CALL = f"""(async ([name, input, limit]) => {{ {FIND}
  const tool = own.find(one => one.name === name);
  if (!tool || !context.executeTool) return {{missing: true}};
  const options = {{signal: AbortSignal.timeout(limit)}};
  const call = async () => {{
    try {{ return await context.executeTool(tool, input, options); }} catch (problem) {{
      if (!String(problem && problem.message).includes('Failed to parse input')) throw problem;
      return await context.executeTool(tool, JSON.stringify(input), options);
    }}
  }};
  try {{
    const value = await call();
    const text = typeof value === 'string' ? value : JSON.stringify(value ?? null) ?? '';
    return {{text: text.slice(0, {MAX_RESULT_CHARACTERS}), characters: text.length}};
  }} catch (problem) {{
    const late = problem && problem.name === 'TimeoutError';
    return {{late, problem: String(problem && problem.message || problem).slice(0, 500)}};
  }}
}})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAction:
    """One action as the page describes it. parameters: the part of its JSON Schema that is used:
    types, choices and required names.
    """

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """Result of a call. text: its first characters. characters: of the whole. is_gone: the page was
    left before it was there.
    """

    text: str = ""
    characters: int = 0
    is_gone: bool = False


async def list_actions(page: Page) -> list[RegisteredAction]:
    """Return the actions that the scripts of a page have registered and not taken back."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with _world(page) as (session, world):
            found = await _evaluated(session, world, LIST)
            return _read(found)
    return []


async def call_action(
    page: Page, name: str, arguments: Mapping[str, object], timeout_s: float
) -> CallResult:
    """Call a registered action.

    Raises:
        BrowserProblem: the page has none of this name, it failed, or it took too long.
    """
    from playwright.async_api import Error

    call = f"{CALL}({json.dumps([name, dict(arguments), int(timeout_s * 1000)])})"
    try:
        async with _world(page) as (session, world):
            found = await _evaluated(session, world, call)
    except Error as exc:
        lost = ("context was destroyed", "navigated or closed", "Cannot find context")
        if any(words in exc.message for words in lost) and not page.is_closed():
            return CallResult(is_gone=True)
        raise
    fields = found if isinstance(found, dict) else {}
    if fields.get("missing"):
        raise BrowserProblem("not-found", f"the page registers no action {name!r} (any more)")
    if fields.get("late"):
        raise BrowserProblem("timeout", f"the action {name!r} did not end within {timeout_s:g} s")
    if "problem" in fields:
        raise BrowserProblem("refused", f"the action {name!r} failed: {fields['problem']}")
    text, characters = fields.get("text"), fields.get("characters")
    return CallResult(
        text=text[:MAX_RESULT_CHARACTERS] if isinstance(text, str) else "",
        characters=characters if isinstance(characters, int) else 0,
    )


@asynccontextmanager
async def _world(page: Page) -> AsyncIterator[tuple[CDPSession, int]]:
    """Open a world of our own in the main frame of a page."""
    from playwright.async_api import Error

    session = await page.context.new_cdp_session(page)
    try:
        tree = await session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await session.send(
            "Page.createIsolatedWorld", {"frameId": frame, "worldName": WORLD}
        )
        yield session, world["executionContextId"]
    finally:
        with suppress(Error):
            await session.detach()


async def _evaluated(session: CDPSession, world: int, expression: str) -> Any:
    """Return the value of a promise in a world; None if it failed."""
    reply = await session.send(
        "Runtime.evaluate",
        {
            "expression": expression,
            "contextId": world,
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    return None if "exceptionDetails" in reply else reply["result"].get("value")


def _read(found: object) -> list[RegisteredAction]:
    listed = found if isinstance(found, list) else []
    actions: dict[str, RegisteredAction] = {}
    for one in listed[:MAX_ACTIONS]:
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            continue
        description = " ".join(str(one.get("description", "")).split())[:MAX_DESCRIPTION]
        parameters = _parameters(str(one.get("schema", "")))
        actions[name] = RegisteredAction(name=name, description=description, parameters=parameters)
    return list(actions.values())


def _parameters(text: str) -> dict[str, object]:
    """Return the known part of a JSON Schema: no reference, pattern or nesting is followed."""
    try:
        schema = json.loads(text) if len(text) <= MAX_SCHEMA_CHARACTERS else None
    except (ValueError, RecursionError):
        schema = None
    schema = schema if isinstance(schema, dict) else {}
    listed = schema.get("properties")
    properties = {
        name: _property(part)
        for name, part in list((listed if isinstance(listed, dict) else {}).items())[
            :MAX_PARAMETERS
        ]
        if NAME.fullmatch(name)
    }
    needed = schema.get("required")
    required = [name for name in needed if name in properties] if isinstance(needed, list) else []
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }


def _property(part: object) -> dict[str, object]:
    fields = part if isinstance(part, dict) else {}
    kind = fields.get("type")
    found: dict[str, object] = {}
    for key in COPIED:
        value = fields.get(key)
        if isinstance(value, str):
            found[key] = " ".join(value.split())[:200]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[key] = value
    found["type"] = kind if isinstance(kind, str) and kind in TYPES else "string"
    choices = fields.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= MAX_PARAMETERS:
        found["enum"] = [one for one in choices if isinstance(one, str | int | float | bool)]
    return found
