"""Flows as tools: their names, their descriptions, and the results of calls."""

from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testbed.bundles import granted, source
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import BundleHash
from uncaged_engine.api import Engine
from uncaged_tools.flows import (
    FlowTool,
    call,
    find_tool,
    free_name,
    reads_prompt,
    split,
    tool_document,
    tool_name,
    tools,
)

HASH = BundleHash("C9NMV6V2TQT81")
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where."},
        "days": {"type": "integer", "default": 3},
        "key": {"type": "string", "forPeople": True},
    },
    "required": ["city", "key"],
    "additionalProperties": False,
}
WEATHER = source(
    "weather",
    """
    answer = yield {"null": {"value": input["params"]}}
    return {"success": True, "message": "sunny", "data": answer}
""",
    parameters=PARAMETERS,
)
ECHO = source(
    "echo",
    """
    yield {"null": {"value": 1}}
    return {"success": input["prompt"] != "no", "message": input["prompt"], "data": None}
""",
    parameters={},
)
RAW = source(
    "raw",
    """
    yield {"null": {"value": 1}}
    return {"success": True, "message": "m", "data": {"results": [], "directOutput": input["params"]["value"]}, "direct": True}
""",
)
ASKS = source(
    "asks",
    '\n    return {"message": (yield {"ask": {"question": "which?"}})}\n',
    policy={"ask": {}},
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Search and Summarize", "search_and_summarize"),
        ("  Weather Report  ", "weather_report"),
        ("top-stories", "top-stories"),
        ("a   b", "a_b"),
        ("a__b", "a_b"),
        ("_-x-_", "x"),
        ("Größe & Co.", "gre_co"),
        ("x" * 80, "x" * 64),
        ("a" * 63 + "_b", "a" * 63),
        ("漢字", "flow_c9nmv6v2tqt81"),
        ("", "flow_c9nmv6v2tqt81"),
        ("---", "flow_c9nmv6v2tqt81"),
    ],
)
def test_a_name_is_made_fit(text: str, name: str) -> None:
    """Lower case, spaces as `_`, everything else dropped, runs collapsed, trimmed, 64 characters;
    never empty.
    """
    assert tool_name(text, HASH) == name


@given(st.text(), st.sets(st.text(alphabet=string.ascii_lowercase + "_", max_size=3)))
def test_every_name_is_one_that_endpoints_take(text: str, taken: set[str]) -> None:
    """The name of a tool is valid for any name of a flow and any names in use."""
    name = free_name(tool_name(text, HASH), taken)
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", name)
    assert name not in taken


def test_a_name_that_is_taken_gets_a_number() -> None:
    """The numbered name is free, and within the limit of 64 characters."""
    assert free_name("run", {"run"}) == "run_2"
    assert free_name("run", {"run", "run_2"}) == "run_3"
    assert free_name("x" * 64, {"x" * 64}) == "x" * 62 + "_2"


def test_every_enabled_flow_is_a_tool(engine: Engine) -> None:
    """With its parameters, without those that only a person may set; the prompt where its code
    reads one; disabled ones are none.
    """
    for text in (WEATHER, ECHO, RAW):
        granted(engine.store, text)
    engine.registry.set_enabled("raw", enabled=False)
    echo, weather = tools(engine, reserved=["echo"])
    assert (echo.name, echo.flow, echo.prompt) == ("echo_2", "echo", True)
    assert echo.schema == {
        "type": "object",
        "properties": {"prompt": {"type": "string", "description": "The task, in words."}},
    }
    assert weather == FlowTool(
        name="weather",
        description="For tests.",
        schema={
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "days": {"type": "integer", "default": 3},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        flow="weather",
        hash=weather.hash,
        prompt=False,
    )
    assert tools(engine, flows=["weather"]) == [weather]


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ('    yield {"null": {"value": given["prompt"]}}\n', True),
        ("    yield {'null': {'value': given.get('prompt')}}\n", True),
        ('    yield {"null": {"value": given["params"]}}\n', False),
        (
            '    question = {}\n    question["prompt"] = "Why?"\n    yield {"llm": question}\n',
            False,
        ),
    ],
)
def test_a_prompt_is_offered_where_it_is_read(body: str, reads: bool) -> None:
    """A bundle's own questions to a model have a prompt, too; that is another one."""
    text = source("asks", body).replace(b"def run(input,", b"def run(given,")
    assert reads_prompt(text) is reads


def test_a_damaged_flow_hides_no_other(engine: Engine) -> None:
    """And one in a language that is only kept is no tool."""
    damaged = granted(engine.store, ECHO)
    engine.store.bundle_path(damaged.hash).chmod(0o600)
    engine.store.bundle_path(damaged.hash).write_bytes(b"descriptor = {}")
    granted(engine.store, WEATHER)
    granted(engine.store, source("kept", "\n    yield\n", unsupported="typescript"))
    assert [tool.name for tool in tools(engine)] == ["weather"]


def test_a_tool_is_written_as_each_endpoint_takes_it(engine: Engine) -> None:
    """Three forms of the same."""
    granted(engine.store, WEATHER)
    [tool] = tools(engine)
    named = {"name": "weather", "description": "For tests."}
    assert tool_document(tool, "anthropic") == {**named, "input_schema": tool.schema}
    assert tool_document(tool, "openai") == {
        "type": "function",
        "function": {**named, "parameters": tool.schema},
    }
    assert tool_document(tool, "mcp") == {**named, "inputSchema": tool.schema}
    assert json.loads(json.dumps(tool_document(tool, "openai"))) == tool_document(tool, "openai")


def test_arguments_become_prompt_and_parameters(engine: Engine) -> None:
    """An unknown argument is refused by name, as is one that only a person may set."""
    granted(engine.store, WEATHER)
    granted(engine.store, ECHO)
    among = tools(engine)
    assert split(find_tool(among, "echo"), {"prompt": "x"}) == ("x", {})
    assert split(find_tool(among, "weather"), {"city": "Bern"}) == ("", {"city": "Bern"})
    with pytest.raises(
        UsageError, match="the tool weather has no argument 'key'; it has: city, days"
    ):
        split(find_tool(among, "weather"), {"key": "k"})
    with pytest.raises(UsageError, match="prompt must be text, not 5"):
        split(find_tool(among, "echo"), {"prompt": 5})
    with pytest.raises(NotFoundError, match=r"there is no tool 'wether' \(there are: weather\)"):
        find_tool(among, "wether")


@pytest.mark.slow
def test_a_call_runs_a_thread(engine: Engine) -> None:
    """The thread's result is the call's; no success, a direct output and a waiting thread have
    different results.
    """
    for text in (ECHO, RAW, ASKS):
        granted(engine.store, text)
    on_event: list[Any] = []
    done = call(engine, "echo", {"prompt": "hello"}, on_event=on_event.append)
    assert (done.status, done.success, done.message, done.data, done.direct) == (
        "completed",
        True,
        "hello",
        None,
        False,
    )
    assert [event.kind for event in on_event][-1] == "status"
    assert engine.thread(done.thread_id).summary.name == "echo"
    assert call(engine, "echo", {"prompt": "no"}).success is False
    for value in ("text", "", 0, None, {"a": 1}):
        direct = call(engine, "raw", {"value": value})
        assert (direct.data, direct.direct, direct.success) == (value, True, True)
    waiting = call(engine, "asks", {})
    assert (waiting.status, waiting.success) == ("waiting", False)
    assert waiting.message.startswith(
        f"thread {waiting.thread_id} waits for a person: which?; see: uncaged-workflow thread "
    )
