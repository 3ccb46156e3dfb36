"""Listeners on loopback: their socket, their guard (token, host, origin), and whether a client is
still there.
"""

from __future__ import annotations

from ..listening.asgi import GONE, App, Message, Receive, Scope, Send, guarded
from ..listening.guard import (
    CREDENTIAL_SUBPROTOCOL,
    LOCAL_HOSTS,
    LOOPBACK,
    Guard,
    in_address,
    token_of,
    token_path,
)
from ..listening.sockets import listen

__all__ = [
    "CREDENTIAL_SUBPROTOCOL",
    "GONE",
    "LOCAL_HOSTS",
    "LOOPBACK",
    "App",
    "Guard",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "guarded",
    "in_address",
    "listen",
    "token_of",
    "token_path",
]
