"""Real servers as processes of their own, and the library's own client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
import pytest
from httpx2 import AsyncClient
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from testbed.bundles import granted, source
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine
from uncaged_engine.listening.guard import token_of

T = TypeVar("T")

DOUBLE = source(
    "double",
    """
    first = yield {"null": {"value": input["params"]["n"], "label": "block 1 of 2"}}
    second = yield {"null": {"value": first}}
    return {"success": first != 13, "message": f"twice {first}", "data": {"double": first + second}}
""",
    description="Doubles a number.",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "The number."}},
        "required": ["n"],
    },
)
FOREVER = source(
    "forever",
    '\n    yield {"null": {"sleep_s": 600}}\n    return {"success": True}\n',
    parameters={},
)
RAW = source(
    "raw",
    """
    yield {"null": {"value": 1}}
    return {"success": True, "message": "", "data": {"directOutput": "word for word"}, "direct": True}
""",
    parameters={},
)
ASKS = source(
    "asks",
    """
    answer = yield {"ask": {"question": "Which number?", "schema": {"type": "integer"}}}
    return {"success": True, "message": f"it is {answer}", "data": answer}
""",
    policy={"ask": {}},
    parameters={},
)
RUN = source(
    "run",
    '\n    yield {"null": {"value": 1}}\n    return {"success": True, "message": "the flow called run"}\n',
    parameters={},
)
FLOWS = (DOUBLE, FOREVER, RAW, ASKS, RUN)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """A store with a few flows; one of them is disabled, and none is shipped."""
    engine.registry.seed(__version__, lambda: (), now_ms=1)
    for text in FLOWS:
        granted(engine.store, text)
    granted(engine.store, source("off", "\n    yield\n"))
    engine.registry.set_enabled("off", enabled=False)
    return engine


def environment(engine: Engine) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "XDG_RUNTIME_DIR")}
    return {**kept, "UNCAGED_WORKFLOW_HOME": str(engine.store.root)}


def authorization(engine: Engine) -> str:
    return f"Bearer {token_of(engine.store)}"


def with_token(engine: Engine) -> AsyncClient:
    """A client of HTTP that may speak to the store's listeners."""
    return create_mcp_http_client(headers={"Authorization": authorization(engine)})


@contextmanager
def http_server(engine: Engine) -> Iterator[str]:
    """A server on a free port of loopback; yields its address."""
    command = [sys.executable, "-m", "uncaged_cli", "mcp", "--http", "0"]
    with subprocess.Popen(
        command, env=environment(engine), stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", server.stderr.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            server.terminate()
            server.communicate(timeout=60)


@pytest.fixture
def http_url(filled: Engine) -> Iterator[str]:
    with http_server(filled) as url:
        yield url


@pytest.fixture(params=["stdio", "http", "legacy"])
def talk(
    request: pytest.FixtureRequest, filled: Engine
) -> Iterator[Callable[[Callable[[Client], Awaitable[T]]], T]]:
    """Connects the library's client, lets a function talk, and returns what came of it; over both
    transports, and as older clients do.
    """

    def run(target: StdioServerParameters | str, talk: Callable[[Client], Awaitable[T]]) -> T:
        async def connected() -> T:
            if isinstance(target, str):
                async with (
                    with_token(filled) as http,
                    Client(streamable_http_client(target, http_client=http)) as client,
                ):
                    return await talk(client)
            async with Client(
                target, mode="legacy" if request.param == "legacy" else "auto"
            ) as client:
                return await talk(client)

        return anyio.run(connected)

    if request.param == "http":
        with http_server(filled) as url:
            yield lambda talk: run(url, talk)
    else:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "uncaged_cli", "mcp"], env=environment(filled)
        )
        yield lambda talk: run(command, talk)
