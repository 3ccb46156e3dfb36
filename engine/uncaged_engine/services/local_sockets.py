"""Local sockets of a store: their paths, a listener, and messages of one JSON object per line."""

from __future__ import annotations

from ..worker.address import named_socket
from ..worker.wire import error_message, listen, pack, raise_error, receive_line, unpack

__all__ = [
    "error_message",
    "listen",
    "named_socket",
    "pack",
    "raise_error",
    "receive_line",
    "unpack",
]
