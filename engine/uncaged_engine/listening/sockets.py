"""Listening socket."""

from __future__ import annotations

import errno
import os
import socket

from uncaged_bundles.errors import UsageError

from .guard import LOOPBACK


def listen(port: int, host: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens on a port of an address of this machine; 0 takes a free one.

    Raises:
        UsageError: the port is taken, or not for this user, or the host does not resolve, or is not
            this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as exc:
        raise UsageError(
            f"the host {host!r} does not resolve to an address; give --host an address of this machine"
        ) from exc
    # the first of those in IPv4, if there are any: `localhost` is 127.0.0.1
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    try:
        return socket.create_server(address, family=family)
    except OSError as exc:
        if exc.errno == errno.EADDRNOTAVAIL:
            raise UsageError(
                f"{host} is no address of this machine; give --host one that is, such as {LOOPBACK}"
            ) from exc
        where = f"port {port}" if host == LOOPBACK else f"port {port} of {host}"
        raise UsageError(
            f"{where} cannot be served: {os.strerror(exc.errno or 0)}; choose another, or 0 for a free one"
        ) from exc
