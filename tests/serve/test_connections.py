"""Bounds of connections: who may open a WebSocket, and how long a silent or unread one lasts."""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from testbed.serving import SCRIPT, authorization, running
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import CREDENTIAL_SUBPROTOCOL, LOOPBACK, token_of
from uncaged_serve import connections
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from .conftest import Distribution

MODULE = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] != "websocket":
        raise NotImplementedError
    await receive()
    subprotocol = next(iter(scope["subprotocols"]), None)
    await send({"type": "websocket.accept", "subprotocol": subprotocol})
    if scope["path"] == "/echo/flood":
        try:
            while True:
                send_all = send({"type": "websocket.send", "text": "x" * 65536})
                await asyncio.wait_for(send_all, 0.5)
        except TimeoutError:
            print("given up", flush=True)
            return
    while (message := await receive())["type"] == "websocket.receive":
        headers = [name.decode() for name, _ in scope["headers"]]
        await send({"type": "websocket.send", "text": message["text"] + str(headers)})

def route(engine):
    return app
"""


@contextmanager
def serving(engine: Engine, distribution: Distribution, **times: int) -> Iterator[int]:
    site = distribution(MODULE, {"echo": "mine:route"})
    with running(["-c", SCRIPT, json.dumps(times)], engine, site) as server:
        assert server.stdout is not None
        port = urlsplit(json.loads(server.stdout.readline())[0]).port
        assert port is not None
        yield port


def status_of(port: int, path: str = "/echo", host: str = LOOPBACK, **options: Any) -> int:
    """Return the status with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://{host}:{port}{path}", **options)
    return refused.value.response.status_code


@pytest.mark.slow
def test_a_websocket_needs_the_token_and_no_foreign_page(
    engine: Engine, distribution: Distribution
) -> None:
    """A program brings the token as a header, a page of this listener as a subprotocol; a foreign
    page, a wrong token and one in the address are refused with their status.
    """
    header = authorization(engine)
    token = token_of(engine.store)
    offered = [
        Subprotocol("uncaged-workflow"),
        Subprotocol(f"{CREDENTIAL_SUBPROTOCOL}{token}"),
    ]
    with serving(engine, distribution) as port:
        address = f"ws://{LOOPBACK}:{port}/echo"
        with connect(address, additional_headers=header) as client:
            client.send("hello")
            answer = str(client.recv(timeout=60))
            assert answer.startswith("hello")
            assert "authorization" not in answer
        own = Origin(f"http://localhost:{port}")
        with connect(address, subprotocols=offered, origin=own) as page:
            assert page.subprotocol == "uncaged-workflow"
        assert page.response is not None
        assert token not in str(page.response.headers)
        assert status_of(port) == 401
        assert status_of(port, f"/echo?token={token}") == 401
        assert status_of(port, subprotocols=[Subprotocol("uncaged-workflow")]) == 401
        for origin in ("https://evil.example", "http://localhost:1", "null"):
            assert status_of(port, subprotocols=offered, origin=Origin(origin)) == 403
            assert status_of(port, additional_headers=header, origin=Origin(origin)) == 403
        with closing(socket.create_connection((LOOPBACK, port))) as rebound:
            assert (
                status_of(port, host="evil.example", additional_headers=header, sock=rebound) == 421
            )
        assert status_of(port, "/none", additional_headers=header) == 403


@pytest.mark.slow
@pytest.mark.parametrize("begun", [b"", b"GET /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: webs"])
def test_a_silent_or_slow_handshake_is_ended(
    begun: bytes, engine: Engine, distribution: Distribution
) -> None:
    """A connection without a whole request after the limit is closed, also if bytes keep arriving;
    one that is open goes on.
    """
    with (
        serving(engine, distribution, request_s=2) as port,
        connect(f"ws://{LOOPBACK}:{port}/echo", additional_headers=authorization(engine)) as other,
        closing(socket.create_connection((LOOPBACK, port), timeout=60)) as slow,
    ):
        slow.sendall(begun)
        ready: list[socket.socket] = []
        while not ready:
            ready = select.select([slow], [], [], 0.2)[0]
            if begun and not ready:
                slow.sendall(b"x")
        with closing(slow), suppress(ConnectionResetError):
            assert slow.recv(100) == b""
        other.send("still here")
        assert str(other.recv(timeout=60)).startswith("still here")


@pytest.mark.slow
def test_an_unauthorized_request_cannot_hold_its_connection_by_a_slow_body(
    engine: Engine, distribution: Distribution
) -> None:
    """A refused request whose body never ends is closed after the limit."""
    with (
        serving(engine, distribution, request_s=2) as port,
        closing(socket.create_connection((LOOPBACK, port), timeout=60)) as slow,
    ):
        head = f"POST /echo HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nContent-Length: 1000000\r\n\r\n"
        slow.sendall(head.encode())
        received = b""
        with suppress(ConnectionResetError, BrokenPipeError):
            while data := slow.recv(4096):
                received += data
                slow.sendall(b"x")
        assert received.startswith(b"HTTP/1.1 401")


@pytest.mark.slow
def test_a_connection_whose_client_never_reads_is_aborted(
    engine: Engine, distribution: Distribution
) -> None:
    """When the application gives up, the server does not wait for the client to read what is left:
    the client's later writes fail.
    """
    with serving(engine, distribution) as port, closing(socket.socket()) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.settimeout(20)
        silent.connect((LOOPBACK, port))
        head = [
            "GET /echo/flood HTTP/1.1",
            f"Host: {LOOPBACK}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            *(f"{name}: {value}" for name, value in authorization(engine).items()),
        ]
        silent.sendall("\r\n".join([*head, "", ""]).encode())
        assert silent.recv(12) == b"HTTP/1.1 101"
        frame = b"\x81\x81" + bytes(4) + b"x"
        with pytest.raises(ConnectionError):
            while True:
                silent.sendall(frame)


def test_an_http_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose client stops to read ends, so that nothing waits for it."""
    monkeypatch.setattr(connections, "READ_S", 0.1)

    async def work() -> None:
        ended = asyncio.Event()

        async def flood(_: Any, __: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while server.server_state.connections:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            ended.set()

        config = uvicorn.Config(flood, http=connections.HttpConnection, lifespan="off")
        server = uvicorn.Server(config)
        config.load()
        listener = await asyncio.get_running_loop().create_server(
            lambda: connections.HttpConnection(config, server.server_state, {}), LOOPBACK, 0
        )
        port = listener.sockets[0].getsockname()[1]
        with closing(socket.create_connection((LOOPBACK, port))) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(ended.wait(), 60)
        listener.close()

    asyncio.run(work())
