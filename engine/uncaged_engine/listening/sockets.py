"""Listening socket on loopback."""

from __future__ import annotations

import os
import socket

from uncaged_bundles.errors import UsageError

from .guard import LOOPBACK


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback; 0 takes a free one.

    Raises:
        UsageError: the port is taken, or not for this user.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as exc:
        raise UsageError(
            f"port {port} cannot be served: {os.strerror(exc.errno or 0)}; choose another, or 0 for a free one"
        ) from exc
