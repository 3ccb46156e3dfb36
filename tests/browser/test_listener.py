"""Listener for the extension, against clients that are not the extension."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from testbed.extensions import ORIGIN, arrive
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.relay.listener import EXTENSION_ID, ExtensionListener, prompt_socket
from uncaged_browser.relay.pairing import Pairings
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

MANIFEST = Path(__file__).parents[2] / "engine" / "uncaged_browser" / "extension" / "manifest.json"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def listening(tmp_path: Path, work: Callable[[ExtensionListener], Awaitable[None]]) -> None:
    """Run a test with a listener on a free port."""

    async def run() -> None:
        async with running(tmp_path) as listener:
            await work(listener)

    asyncio.run(run())


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[ExtensionListener]:
    listener = ExtensionListener(Pairings(directory / "pairings.json"))
    await listener.start(0)
    try:
        yield listener
    finally:
        await listener.aclose()


def code_of(listener: ExtensionListener) -> str:
    """A new pairing code, as the extension sends it."""
    return listener.pairings.new_code().replace("-", "")


async def request(port: int, path: str, headers: dict[str, str]) -> bytes:
    """Send an HTTP request and return what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join((*lines, "", "")).encode())
    try:
        async with asyncio.timeout(60):
            return await reader.read(4096)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/extension", {}),
        ("/extension", {"Origin": "https://evil.test"}),
        ("/extension", {"Origin": "null"}),
        ("/extension", {"Origin": "chrome-extension://" + "a" * 32}),
        ("/extension", {"Origin": ORIGIN, "Host": "evil.test"}),
        ("/extension", {"Origin": ORIGIN, "Host": "evil.test:PORT"}),
        ("/", {"Origin": ORIGIN}),
        ("/json/version", {}),
    ],
)
def test_a_page_that_talks_to_the_port_learns_nothing(
    tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    """A handshake of another origin, for another host or path gets an empty refusal; that of the
    extension is accepted.
    """

    async def work(listener: ExtensionListener) -> None:
        own = {"Host": f"127.0.0.1:{listener.port}", "Origin": ORIGIN, **UPGRADE}
        sent = {"Host": own["Host"], **UPGRADE, **headers}
        sent["Host"] = sent["Host"].replace("PORT", str(listener.port))
        head, _, body = (await request(listener.port, path, sent)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403 ")
        assert body == b""
        assert b"uncaged" not in head
        assert b"Access-Control" not in head
        assert (await accepted_head(listener, own)).startswith(b"HTTP/1.1 101 ")

    async def accepted_head(listener: ExtensionListener, headers: dict[str, str]) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(("GET /extension HTTP/1.1", *lines, "", "")).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        return head

    listening(tmp_path, work)


def test_a_code_pairs_once_and_its_token_connects_again(tmp_path: Path) -> None:
    """The code is used up by pairing; the token is in a private file and connects from then on."""

    async def work(listener: ExtensionListener) -> None:
        code = code_of(listener)
        first, reply = await arrive(listener.port, code, kind="code")
        await first.close()
        assert stat.S_IMODE((tmp_path / "pairings.json").stat().st_mode) == 0o600
        with pytest.raises(ConnectionClosed):
            await arrive(listener.port, code, kind="code", client="client-2")
        again, later = await arrive(listener.port, reply["token"])
        assert "token" not in later
        assert listener.link is not None
        await again.close()
        with pytest.raises(ConnectionClosed):
            await arrive(listener.port, reply["token"], client="client-2")
        assert listener.pairings.forget() == 1
        with pytest.raises(ConnectionClosed):
            await arrive(listener.port, reply["token"])

    listening(tmp_path, work)


def test_wrong_codes_use_a_code_up(tmp_path: Path) -> None:
    """After five wrong codes the right one is refused, too; a new one pairs."""

    async def work(listener: ExtensionListener) -> None:
        code = code_of(listener)
        for _ in range(5):
            with pytest.raises(ConnectionClosed) as caught:
                await arrive(listener.port, "0" * 12, kind="code")
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.reason == "refused"
        with pytest.raises(ConnectionClosed):
            await arrive(listener.port, code, kind="code")
        assert listener.link is None
        _, reply = await arrive(listener.port, code_of(listener), kind="code")
        assert reply["token"]

    listening(tmp_path, work)


@pytest.mark.parametrize(
    "hello",
    ["", "{", "[]", '{"hello": {}}', '{"hello": {"protocol": 2}}', "[" * 100_000, b"\xff\xfe"],
)
def test_a_malformed_greeting_is_refused(tmp_path: Path, hello: str | bytes) -> None:
    """A greeting that is no greeting closes its own connection; the listener goes on."""

    async def work(listener: ExtensionListener) -> None:
        url = f"ws://127.0.0.1:{listener.port}/extension"
        headers = {"Origin": ORIGIN}
        async with connect(url, additional_headers=headers, proxy=None) as connection:
            await connection.recv()
            await connection.send(hello)
            with pytest.raises(ConnectionClosed):
                await connection.recv()
        await arrive(listener.port, code_of(listener), kind="code")

    listening(tmp_path, work)


def test_a_second_client_of_the_same_id_replaces_the_first(tmp_path: Path) -> None:
    """The older connection is closed as a duplicate; another client's stays, and the one that came
    last is used.
    """

    async def work(listener: ExtensionListener) -> None:
        first, reply = await arrive(listener.port, code_of(listener), kind="code")
        other, _ = await arrive(listener.port, code_of(listener), kind="code", client="client-2")
        second, _ = await arrive(listener.port, reply["token"])
        with pytest.raises(ConnectionClosed) as caught:
            await first.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.reason == "duplicate"
        assert listener.link is not None
        assert listener.link.client == "client-1"
        await second.close()
        await listener_has(listener, "client-2")
        await other.close()
        await listener_has(listener, None)

    listening(tmp_path, work)


async def listener_has(listener: ExtensionListener, client: str | None) -> None:
    """Wait until the listener uses a client."""
    async with asyncio.timeout(60):
        while (listener.link.client if listener.link else None) != client:
            await asyncio.sleep(0)


def test_a_call_ends_in_time_with_its_method_in_the_error(tmp_path: Path) -> None:
    """A call that is not answered, refused, unknown or cut off fails by name."""

    async def work(listener: ExtensionListener) -> None:
        client, _ = await arrive(listener.port, code_of(listener), kind="code")
        link = await listener.wait_link(60)
        assert link is not None

        async def failed(kind: str, reply: dict[str, object] | None) -> None:
            call = asyncio.ensure_future(
                link.call("tabs.query", {}, timeout_s=0.2 if not reply else 60)
            )
            number = json.loads(await client.recv())["id"]
            if reply is not None:
                await client.send(json.dumps({"channel": "browserControl", "id": number, **reply}))
            with pytest.raises(BrowserProblem, match=r"^tabs\.query: ") as caught:
                await call
            assert caught.value.kind == kind

        await failed("timeout", None)
        await failed("refused", {"error": "no"})
        await failed("unsupported", {"unknown": True, "error": "unknown method"})
        call = asyncio.ensure_future(link.call("tabs.get", 1))
        await client.recv()
        client.transport.abort()
        with pytest.raises(BrowserProblem, match=r"tabs\.get: the connection") as caught:
            await call
        assert caught.value.kind == "closed"
        with pytest.raises(BrowserProblem, match=r"tabs\.query"):
            await link.call("tabs.query")

    listening(tmp_path, work)


def test_the_extension_keeps_awake_and_learns_of_unknown_methods(tmp_path: Path) -> None:
    """The extension's own channel answers its keep-alive, and names a method that it lacks."""

    async def work(listener: ExtensionListener) -> None:
        client, _ = await arrive(listener.port, code_of(listener), kind="code")
        for method, answer in (("ping", {"result": None}), ("open", {"unknown": True})):
            message = {"channel": "agentService", "id": 7, "method": method, "params": []}
            await client.send(json.dumps(message))
            reply = json.loads(await client.recv())
            assert reply["id"] == 7
            assert answer.items() <= reply.items()

    listening(tmp_path, work)


def test_a_connection_sends_small_messages_at_once() -> None:
    """Accepted connections inherit that they wait for no acknowledgement."""
    with prompt_socket(0) as opened, socket.create_connection(opened.getsockname()):
        accepted, _ = opened.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_id_of_the_extension_follows_from_its_key() -> None:
    """The manifest's key gives the id that the listener expects as the origin."""
    key = base64.b64decode(json.loads(MANIFEST.read_text("utf-8"))["key"])
    digest = hashlib.sha256(key).hexdigest()[:32]
    assert digest.translate(str.maketrans("0123456789abcdef", "abcdefghijklmnop")) == EXTENSION_ID
