"""Listening socket."""

from __future__ import annotations

import os
import socket

from uncaged_bundles.errors import UsageError

from .guard import LOOPBACK


def listen(port: int, host: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens on a port of an address of this machine; 0 takes a free one.

    Raises:
        UsageError: the port is taken, or not for this user, or the address is not this machine's.
    """
    where = f"port {port}" if host == LOOPBACK else f"port {port} of {host}"
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except socket.gaierror as exc:
        raise UsageError(f"{host} is no address of this machine: {exc.strerror}") from exc
    except OSError as exc:
        raise UsageError(
            f"{where} cannot be served: {os.strerror(exc.errno or 0)}; choose another, or 0 for a free one"
        ) from exc
