"""Listeners on loopback: their socket, their guard (token, host, origin), and whether a client is
still there.
"""

from __future__ import annotations

from ..listening.asgi import GONE, App, Message, Receive, Scope, Send, guarded
from ..listening.guard import CREDENTIAL_SUBPROTOCOL, LOOPBACK, Guard, token_of, token_path
from ..listening.sockets import listen

__all__ = [
    "CREDENTIAL_SUBPROTOCOL",
    "GONE",
    "LOOPBACK",
    "App",
    "Guard",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "guarded",
    "listen",
    "token_of",
    "token_path",
]
