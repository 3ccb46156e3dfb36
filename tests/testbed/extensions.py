"""Client that speaks the extension's side of the connection, as another program may."""

from __future__ import annotations

import json
from typing import Any

from uncaged_browser.relay.listener import EXTENSION_ID
from uncaged_browser.relay.pairing import proof
from websockets.asyncio.client import ClientConnection, connect

ORIGIN = f"chrome-extension://{EXTENSION_ID}"


async def arrive(
    port: int, key: str, *, kind: str = "token", client: str = "client-1", browser: str = "start-1"
) -> tuple[ClientConnection, dict[str, Any]]:
    """Connect and show a proof; return the connection and the reply.

    Raises:
        ConnectionClosed: the proof was refused.
    """
    connection = await connect(
        f"ws://127.0.0.1:{port}/extension",
        additional_headers={"Origin": ORIGIN},
        proxy=None,
    )
    welcome = json.loads(await connection.recv())["welcome"]
    hello = {
        "protocol": welcome["protocol"],
        "client": client,
        "browser": browser,
        "kind": kind,
        "nonce": "nonce",
        "userAgent": "Chrome/1.0",
        "proof": proof(key, "extension", welcome["nonce"], "nonce", client),
    }
    await connection.send(json.dumps({"hello": hello}))
    reply: dict[str, Any] = json.loads(await connection.recv())["accepted"]
    assert reply["proof"] == proof(key, "engine", "nonce", welcome["nonce"], client)
    return connection, reply
