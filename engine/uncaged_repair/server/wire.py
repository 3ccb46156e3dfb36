"""Messages between processes: JSON objects, one a line. Any other line is dropped."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]
else:
    Message = dict  # Python 3.8 subscripts no built-in types


class MessageReader:
    """Reader of the messages on one descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        self._rest = b""

    def take(self) -> list[Message]:
        """Read once, blocking if there is nothing, and return the messages that are complete."""
        chunk = os.read(self.descriptor, 1 << 16)
        if not chunk:
            self.ended = True
            return []
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        parsed = [_parse(line) for line in lines]
        return [message for message in parsed if message is not None]


def send(descriptor: int, message: Message) -> None:
    """Write *message* whole. A reader that is gone is no error."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except OSError:
            return


def _parse(line: bytes) -> Message | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
