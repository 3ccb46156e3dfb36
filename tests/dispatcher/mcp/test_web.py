"""MCP servers at an address: both forms of an answer, sessions, and servers that fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from testbed.mcp_server import FORECAST
from testbed.webserver import Reply, Seen, WebServer, data, redirect, serving, text
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_dispatcher.mcp.client import McpProblem
from uncaged_dispatcher.mcp.opening import ServerAccess
from uncaged_engine.services.settings import Config, McpServerSettings
from uncaged_engine.settings.config import SecretSource

SECRET = "sesame-4711-sesame"


def access(url: str) -> ServerAccess:
    settings = McpServerSettings(url=url, headers={"Authorization": "Bearer secret:WIKI"})
    return ServerAccess(
        config=Config(mcp_servers={"wiki": settings}, secrets={"WIKI": SecretSource(env="WIKI")}),
        environment={"WIKI": SECRET},
        directory=Path("/"),
    )


def answered(message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a good server to a request."""
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "serverInfo": {"name": "wiki"},
            "capabilities": {},
        },
        "tools/list": {"tools": [FORECAST]},
        "tools/call": {"content": [{"type": "text", "text": f"seen {SECRET}"}]},
    }
    return {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}


def event(*messages: object) -> bytes:
    return b"".join(b": note\r\ndata: %s\r\n\r\n" % json.dumps(one).encode() for one in messages)


def good(seen: Seen, *, stream: bool = False, more: Iterable[bytes] = ()) -> Reply:
    """A server that answers by JSON, or by a stream that goes on with more after the answer."""
    if "id" not in seen.json:
        return Reply(status=202)
    if not stream:
        return data(answered(seen.json), Mcp_Session_Id="s-1")
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    body = chain([event(changed, answered(seen.json))], more)
    return Reply(headers=[("Content-Type", "text/event-stream")], body=body)


def tools(server: WebServer, timeout_s: float = 5.0) -> list[Any]:
    with access(f"{server.url}/mcp").open("wiki", timeout_s) as (client, _redact):
        return client.list_tools()


@pytest.mark.slow
def test_a_session_keeps_its_headers() -> None:
    """The key goes with each request; session and version with those after the handshake. Secrets
    in an answer are replaced.
    """
    with serving(good) as server, access(f"{server.url}/mcp").open("wiki") as (client, redact):
        assert client.list_tools() == [FORECAST]
        result = redact(client.call("get_forecast", {"city": "Oslo"}))
        assert result == {"content": [{"type": "text", "text": "seen secret:WIKI"}]}
    sent = [
        [seen.headers.get(name) for name in ("mcp-session-id", "mcp-protocol-version")]
        for seen in server.seen
    ]
    assert sent == [[None, None], *[["s-1", "2025-06-18"]] * 3]
    assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {SECRET}"}


def test_a_stream_is_read_up_to_its_answer() -> None:
    """A server that keeps its stream open delays nothing; what it announces is noted."""

    def open_ended(server_ended: Callable[[float], bool]) -> Iterable[bytes]:
        while not server_ended(0.02):
            yield b": still here\n\n"

    def script(seen: Seen) -> Reply:
        return good(seen, stream=True, more=open_ended(server.ended.wait))

    with serving(script) as server:
        begin = time.monotonic()
        with access(f"{server.url}/mcp").open("wiki", 120) as (client, _redact):
            assert client.list_tools() == [FORECAST]
            assert client.tools_changed
        assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (text(f"bad key {SECRET}", status=401), "answers 401: bad key secret:WIKI"),
        (redirect("https://example.com/mcp"), "answers 302"),
        (text("<html>", "text/html"), "answers with text/html"),
        (text("{", "application/json"), "something that is no message"),
        (text("[]", "application/json"), "something that is no message"),
        (data({"jsonrpc": "2.0", "id": 7, "result": {}}), "gave no answer"),
        (data({"jsonrpc": "2.0", "id": 1, "result": {}}), "names no version"),
        (text("", "text/event-stream"), "gave no answer"),
        (text("x" * (9 << 20), "application/json"), "sends more than 8 MiB"),
    ],
)
def test_a_server_that_fails_is_named_with_the_reason(reply: Reply, words: str) -> None:
    """No answer of a server raises anything else, or has a secret in its message."""
    with serving(lambda _seen: reply) as server, pytest.raises(McpProblem) as caught:
        tools(server)
    assert words in str(caught.value) and "'wiki'" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.slow
def test_a_silent_server_costs_its_limit() -> None:
    """A server that accepts a request and sends nothing is given up in time."""

    def silent(_seen: Seen) -> Reply:
        server.ended.wait(20)
        return Reply()

    with serving(silent) as server, pytest.raises(McpProblem, match="did not answer in time"):
        try:
            tools(server, 0.3)
        finally:
            server.ended.set()


def test_an_address_without_a_server_lacks_something() -> None:
    """The error says what to start or to correct."""
    with serving(good) as server:
        pass
    with pytest.raises(EnvironmentLacks, match=r"correct mcpServers\.wiki\.url") as caught:
        tools(server)
    assert not caught.value.begun
