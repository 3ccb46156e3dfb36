"""Flows of tools: their names, bundles and limits, for servers that lie."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.mcp_server import FORECAST, SET_STATION
from uncaged_dispatcher.mcp.tool_flows import MAX_TOOLS, flow_name, flows_of, write_tool
from uncaged_engine.services.settings import McpServerSettings

SETTINGS = McpServerSettings(command=("weather",), trusted=("get_forecast",))


def test_a_tool_becomes_a_pure_flow_of_its_pack() -> None:
    """Its bundle may call this one tool; equal descriptions give equal bytes."""
    [forecast, station] = flows_of("weather", SETTINGS, [FORECAST, SET_STATION]).flows
    assert (forecast.name, station.name) == ("weather-get-forecast", "weather-set-station")
    descriptor = forecast.bundle.descriptor
    assert descriptor.raw["pack"] == "weather"
    assert descriptor.raw["policy"] == {"mcp": {"tools": ["weather/get_forecast"]}}
    assert descriptor.parameters == FORECAST["inputSchema"]
    assert write_tool("weather", FORECAST, repeat=True) == forecast.bundle.source


def test_what_a_server_claims_of_itself_is_not_believed() -> None:
    """Hints make a tool repeatable only if the person trusts it; trust is the person's word."""
    claims = {**SET_STATION, "annotations": {"readOnlyHint": True, "idempotentHint": True}}
    [forecast, station] = flows_of("weather", SETTINGS, [FORECAST, claims]).flows
    assert (forecast.trusted, station.trusted) == (True, False)
    assert b"REPEAT = True" in forecast.bundle.source
    assert b"REPEAT = False" in station.bundle.source


@pytest.mark.parametrize(
    "tool",
    [
        "text",
        {},
        {"name": 7},
        {"name": ""},
        {"name": "…"},
        {"name": "a\u202eb"},
        {"name": "x" * 129},
        {"name": "x" * 60},
        {"name": "ok", "inputSchema": {"type": "string"}},
    ],
)
def test_a_tool_that_cannot_be_used_is_left_out_with_a_reason(tool: Any) -> None:
    """The other tools are used."""
    found = flows_of("weather", SETTINGS, [tool, FORECAST])
    assert [flow.name for flow in found.flows] == ["weather-get-forecast"]
    [problem] = found.problems
    assert "left out" in problem and "\u202e" not in problem


def test_two_tools_never_share_a_flow() -> None:
    """The second of two names with one spelling is left out."""
    found = flows_of("weather", SETTINGS, [FORECAST, {**FORECAST, "name": "getForecast"}])
    assert len(found.flows) == 1
    assert "'get_forecast' has the flow" in found.problems[0]


def test_a_flood_of_tools_is_cut() -> None:
    """A server gets at most as many flows as the limit allows."""
    found = flows_of("weather", SETTINGS, [{**FORECAST, "name": f"t{n}"} for n in range(300)])
    assert len(found.flows) == MAX_TOOLS
    assert "300 tools" in found.problems[0]


def test_texts_of_a_tool_are_data_of_its_bundle() -> None:
    """Quotes, code and hidden marks in a description change nothing but the description."""
    text = '"""\nimport os\n\u202e\x00' + "'" * 9 + "y" * 2000
    [flow] = flows_of("weather", SETTINGS, [{**FORECAST, "title": text, "description": text}]).flows
    assert len(flow.bundle.descriptor.description) <= 600
    assert b"\n" + b"import os" not in flow.bundle.source
    assert flow_name("weather", "HTTPGet/v2 now") == "weather-httpget-v2-now"
