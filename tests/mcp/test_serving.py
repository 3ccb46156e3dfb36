"""Who may reach the server, and what clients have to be told to find it."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_engine.api import Engine
from uncaged_engine.mcp.server import make_server
from uncaged_engine.mcp.serving import serve_http
from uncaged_engine.mcp.snippets import CLIENTS, snippet

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def ask(url: str, **headers: str) -> int:
    """The status of a first request with these headers."""
    parts = urlsplit(url)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)) as connection:
        connection.request("POST", parts.path, json.dumps(INITIALIZE), {**usual, **headers})
        with connection.getresponse() as response:
            return response.status


@pytest.mark.slow
def test_a_web_page_cannot_reach_the_server(http_url: str) -> None:
    """A browser says where it comes from and whom it means: another host's name, or another page's origin, is refused."""
    assert ask(http_url) == 200
    assert ask(http_url, Host="evil.example") == 421
    assert ask(http_url, Origin="https://evil.example") == 403


def test_a_port_that_is_taken_is_told(engine: Engine) -> None:
    """Before anything is served."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="choose another, or 0 for a free one"):
        serve_http(make_server(engine), taken.getsockname()[1], lambda _: None)


@pytest.mark.parametrize(
    ("client", "document"),
    [
        ("claude", {"mcpServers": {"uncaged-workflow": {"command": "/bin/x", "args": ["mcp"], "env": {"A": "1"}}}}),
        ("cursor", {"mcpServers": {"uncaged-workflow": {"command": "/bin/x", "args": ["mcp"], "env": {"A": "1"}}}}),
        ("vscode", {"servers": {"uncaged-workflow": {"type": "stdio", "command": "/bin/x", "args": ["mcp"], "env": {"A": "1"}}}}),
    ],
)
def test_a_snippet_is_what_the_clients_file_wants(client: str, document: object) -> None:
    """The command as it is found here, or the address of a server that runs."""
    assert snippet(CLIENTS[client], ["/bin/x", "mcp"], {"A": "1"}, None) == document
    [servers] = snippet(CLIENTS[client], ["/bin/x"], {}, "http://127.0.0.1:1/mcp").values()
    assert servers == {"uncaged-workflow": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}
