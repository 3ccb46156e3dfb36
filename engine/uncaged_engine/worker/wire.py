"""Wire format of a worker's socket: one JSON object per line, for requests and answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

from uncaged_bundles import errors
from uncaged_bundles.errors import EngineBug, UncagedError

MAX_REQUEST_BYTES = 4 << 20


def pack(message: Mapping[str, object]) -> bytes:
    """Encode a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def unpack(line: bytes) -> dict[str, Any]:
    """Decode a line. Raises: ValueError: not a JSON object."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"a message is a JSON object, not {type(message).__name__}")
    return message


def error_message(exc: UncagedError) -> dict[str, object]:
    """Encode an error by a class that both sides know: its own, or the nearest base."""
    known = next(one for one in type(exc).__mro__ if getattr(errors, one.__name__, None) is one)
    return {"error": {"class": known.__name__, "message": str(exc)}}


def raise_error(answer: Mapping[str, Any]) -> None:
    """Raise the error of an answer, if it has one."""
    error = answer.get("error")
    if error is None:
        return
    found = getattr(errors, str(error.get("class")), None)
    kind = found if isinstance(found, type) and issubclass(found, UncagedError) else UncagedError
    raise kind(str(error.get("message")))


def receive_line(connection: socket.socket, buffer: bytearray) -> bytes | None:
    """Read the next whole line; None when the peer has closed the connection.

    Raises:
        EngineBug: the line has no end.
    """
    while True:
        end = buffer.find(b"\n")
        if end >= 0:
            line = bytes(buffer[: end + 1])
            del buffer[: end + 1]
            return line
        if len(buffer) > MAX_REQUEST_BYTES:
            raise EngineBug(
                f"a message on a worker's socket is longer than {MAX_REQUEST_BYTES} bytes"
            )
        try:
            part = connection.recv(65536)
        # the worker was killed, or does not answer: as after a close, the caller asks again
        except (ConnectionResetError, TimeoutError):
            return None
        if not part:
            return None
        buffer += part
