"""Routes of packages: which are served, which are reported, and to which a request goes."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from testbed.serving import SCRIPT, authorization, running
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine

from .conftest import Distribution

MODULE = """
async def hello(scope, receive, send):
    assert scope["type"] == "http"
    body = scope["path"].encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

def good(engine):
    assert engine.store.root
    return hello

def raises(engine):
    raise RuntimeError("no luck")

def nothing(engine):
    return None

class Failing:
    async def __call__(self, scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

def failing(engine):
    return Failing()

async def silent(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await receive()

def endless(engine):
    return silent
"""
ROUTES = {
    "good": "mine:good",
    "raises": "mine:raises",
    "nothing": "mine:nothing",
    "no-function": "mine:__doc__",
    "gone": "absent_module:route",
    "failing": "mine:failing",
    "endless": "mine:endless",
    "Bad_Name": "mine:good",
}


def get(engine: Engine, address: str, path: str) -> tuple[int, bytes]:
    parts = urlsplit(address)
    with closing(
        http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    ) as connection:
        connection.request("GET", path, headers=authorization(engine))
        with connection.getresponse() as response:
            return response.status, response.read()


@pytest.mark.slow
def test_a_broken_route_is_reported_and_the_others_are_served(
    engine: Engine, distribution: Distribution
) -> None:
    """Each route of an installed distribution is served below its name, and each that cannot be is
    named with its reason: a missing module, an exception, a wrong object, a failed or endless
    start.
    """
    site = distribution(MODULE, ROUTES)
    with running(["-c", SCRIPT, json.dumps({"start_s": 1})], engine, site) as server:
        assert server.stdout is not None
        address, routes, problems = json.loads(server.stdout.readline())
        assert {"good", "mcp"} <= set(routes)
        assert set(routes) & (set(ROUTES) - {"good"}) == set()
        reasons = {name: text for name in ROUTES for text in problems if f"{name!r}" in text}
        assert set(reasons) == set(ROUTES) - {"good"}
        for name, reason in {
            "raises": "RuntimeError: no luck",
            "nothing": "did not return an ASGI application",
            "no-function": "is not a function",
            "gone": "No module named 'absent_module'",
            "failing": "no database",
            "endless": "not ready after 1 s",
            "Bad_Name": "lower-case",
        }.items():
            assert reason in reasons[name]
        assert get(engine, address, "/good") == (200, b"/good")
        assert get(engine, address, "/good/deep?x=1") == (200, b"/good/deep")
        status, body = get(engine, address, "/api/session")
        listed: Any = json.loads(body)
        assert (status, listed["version"]) == (200, __version__)
        assert listed["routes"] == sorted(routes)
        for path in ("/goods", "/raises", "/failing", "/mine", "//good"):
            assert get(engine, address, path)[0] == 404, path


@pytest.mark.slow
def test_the_mcp_server_is_a_route(engine: Engine) -> None:
    """A client that speaks the Model Context Protocol initializes at `/mcp`, with the same guard as
    `mcp --http`.
    """
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    with running(["-c", SCRIPT, "{}"], engine) as server:
        assert server.stdout is not None
        parts = urlsplit(json.loads(server.stdout.readline())[0])
        for more, status in ((authorization(engine), 200), ({}, 401)):
            with closing(
                http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            ) as connection:
                connection.request("POST", "/mcp", json.dumps(initialize), {**headers, **more})
                with connection.getresponse() as response:
                    assert response.status == status
                    assert (b"serverInfo" in response.read()) == (status == 200)
