"""Clients of MCP over HTTP that are killed in the middle of a call: the call ends, and the server
goes on without a traceback.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from testbed.steering import settle
from uncaged_engine.api import Engine

from .conftest import authorization, environment

pytestmark = pytest.mark.slow

HANDSHAKE = """
import http.client, json, sys
from urllib.parse import urlsplit
url, authorization, version = sys.argv[1:]
parts = urlsplit(url)
usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": authorization}

def post(message, **headers):
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("POST", parts.path, json.dumps({"jsonrpc": "2.0", **message}), {**usual, **headers})
    return connection.getresponse()

hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
answer = post({"id": 1, "method": "initialize", "params": hello})
session = {"Mcp-Session-Id": answer.getheader("mcp-session-id"), "MCP-Protocol-Version": version}
assert answer.status == 200, answer.read()
post({"method": "notifications/initialized"}, **session).read()
answer = post({"id": 2, "method": "tools/call", "params": {"name": "forever", "arguments": {}, "_meta": {"progressToken": 1}}}, **session)
print(answer.status, flush=True)
answer.read()
"""
MODERN = """
import sys
import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
url, authorization, version = sys.argv[1:]

async def call():
    async with create_mcp_http_client(headers={"Authorization": authorization}) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            print("calling", flush=True)
            await client.call_tool("forever", {})

anyio.run(call)
"""
VERSIONS = {
    **dict.fromkeys(HANDSHAKE_PROTOCOL_VERSIONS, HANDSHAKE),
    **dict.fromkeys(MODERN_PROTOCOL_VERSIONS, MODERN),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_killed_client_ends_its_call(filled: Engine, version: str) -> None:
    """SIGKILL in the middle of a call: the thread that the call started is killed, and the server
    prints nothing about it.
    """
    with started([sys.executable, "-m", "uncaged_cli", "mcp", "--http", "0"], filled) as server:
        assert server.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", server.stderr.readline())
        assert found is not None
        words = [sys.executable, "-c", VERSIONS[version], found[0], authorization(filled), version]
        with started(words, filled) as caller:
            assert caller.stdout is not None
            assert caller.stdout.readline()
            while not (
                threads := [thread for thread in filled.threads() if thread.status == "running"]
            ):
                assert caller.poll() is None
            caller.kill()
        assert settle(filled, threads[0].thread_id)["status"] == "killed"
        server.terminate()
        _, said = server.communicate(timeout=60)
    assert said == ""


@contextmanager
def started(words: list[str], engine: Engine) -> Iterator[subprocess.Popen[str]]:
    """A process that is over when this is left, whatever went wrong."""
    with subprocess.Popen(
        words, env=environment(engine), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
