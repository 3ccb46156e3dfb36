"""Access to the MCP server, and the configuration with which clients find it."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_engine.api import Engine
from uncaged_tools.mcp.client_files import CLIENTS, snippet
from uncaged_tools.mcp.server import make_server
from uncaged_tools.mcp.serving import serve_http

from .conftest import authorization

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def ask(url: str, **headers: str) -> int:
    """The status of a first request with these headers."""
    parts = urlsplit(url)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with closing(
        http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    ) as connection:
        connection.request("POST", parts.path, json.dumps(INITIALIZE), {**usual, **headers})
        with connection.getresponse() as response:
            return response.status


@pytest.mark.slow
def test_only_who_has_the_token_calls_tools_over_http(filled: Engine, http_url: str) -> None:
    """Another user of the machine, a web page, and a page of another port of localhost are refused;
    the token alone opens.
    """
    token = authorization(filled)
    port = urlsplit(http_url).port
    assert ask(http_url, Authorization=token) == 200
    assert (
        ask(
            http_url,
            Authorization=token,
            Origin=f"http://localhost:{port}",
            Host=f"localhost:{port}",
        )
        == 200
    )
    assert ask(http_url) == 401
    assert ask(http_url, Authorization="Bearer " + "x" * 43) == 401
    assert ask(http_url, Authorization=token, Host="evil.example") == 421
    assert ask(http_url, Authorization=token, Origin="https://evil.example") == 403
    assert ask(http_url, Authorization=token, Origin="http://localhost:1") == 403
    assert ask(http_url, Authorization=token, Origin="null") == 403


def test_a_port_in_use_is_an_error(engine: Engine) -> None:
    """The error is raised before any request is served."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match="choose another, or 0 for a free one"),
    ):
        serve_http(make_server(engine), taken.getsockname()[1], "x", lambda _: None)


@pytest.mark.parametrize(
    ("client", "document"),
    [
        (
            "claude",
            {
                "mcpServers": {
                    "uncaged-workflow": {"command": "/bin/x", "args": ["mcp"], "env": {"A": "1"}}
                }
            },
        ),
        (
            "cursor",
            {
                "mcpServers": {
                    "uncaged-workflow": {"command": "/bin/x", "args": ["mcp"], "env": {"A": "1"}}
                }
            },
        ),
        (
            "vscode",
            {
                "servers": {
                    "uncaged-workflow": {
                        "type": "stdio",
                        "command": "/bin/x",
                        "args": ["mcp"],
                        "env": {"A": "1"},
                    }
                }
            },
        ),
    ],
)
def test_a_snippet_is_what_the_clients_file_wants(client: str, document: object) -> None:
    """The command as it is found here, or the address of a server that runs."""
    assert snippet(CLIENTS[client], ["/bin/x", "mcp"], {"A": "1"}, None) == document


@pytest.mark.parametrize(
    ("client", "token"),
    [
        ("claude", "Bearer ${UNCAGED_WORKFLOW_TOKEN}"),
        ("cursor", "Bearer ${env:UNCAGED_WORKFLOW_TOKEN}"),
        ("vscode", "Bearer ${input:uncaged-workflow}"),
    ],
)
def test_a_snippet_for_a_running_server_names_the_token_and_does_not_hold_it(
    client: str, token: str
) -> None:
    """The client's file may be in a repository: the token comes from a variable, or from its
    person.
    """
    servers = snippet(CLIENTS[client], ["/bin/x"], {}, "http://127.0.0.1:1/mcp")[
        CLIENTS[client].key
    ]
    entry = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": token}}
    assert servers == {"uncaged-workflow": entry}
