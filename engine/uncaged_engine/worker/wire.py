"""Wire format of a local socket: one JSON object per line, for requests and answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles import errors
from uncaged_bundles.errors import EngineBug, StorageError, UncagedError, os_problem

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


def listen(path: Path) -> socket.socket:
    """Listen at *path*, which a dead process may have left behind; only the holder of a lock calls
    this.

    Raises:
        StorageError: no socket can be made there.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = path.with_name(f".{threading.get_native_id()}.s")
    try:
        temporary.unlink(missing_ok=True)
        listener.bind(str(temporary))
        temporary.chmod(0o600)
        listener.listen(1024)  # a thousand clients may connect while the first is served
        listener.setblocking(False)
        temporary.rename(path)  # a client that finds it can connect
    except OSError as exc:
        listener.close()
        raise StorageError(f"cannot listen at {os_problem(exc, temporary)}") from exc
    return listener
