"""Transport of newline-delimited JSON messages, with bounds; an agent that exceeds one is
disconnected.

Lines that are no messages never reach the protocol library: they are dropped and counted.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 8 << 20
MAX_TURN_BYTES = 256 << 20
MAX_NOISE_BYTES = 1 << 20
MAX_UNREAD_BYTES = 16 << 20
MAX_UNANSWERED = 256


class LineTransport:
    """Standard streams of an agent, as a transport of the protocol library. problem: the bound that
    the agent exceeded, if any.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        read_transport: asyncio.BaseTransport,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Args: read_transport: feeds *reader*."""
        self.problem: str | None = None
        self._reader = reader
        self._read_transport = read_transport
        self._writer = writer
        self._buffer = bytearray()
        self._total_bytes = 0
        self._noise_bytes = 0
        self._unanswered = 0

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end, or when a bound is exceeded."""
        while self.problem is None:
            line = await self._line()
            if line is None:
                return None
            # what is in the buffer already must not keep the loop from other agents
            await asyncio.sleep(0)
            message = parse(line)
            if message is not None:
                self._unanswered += "method" in message and "id" in message
                if self._unanswered > MAX_UNANSWERED:
                    self.problem = f"it asked more than {MAX_UNANSWERED} things at once"
                    return None
                return message
            self._noise_bytes += len(line) + 1
            if self._noise_bytes > MAX_NOISE_BYTES:
                self.problem = f"it wrote more than {MAX_NOISE_BYTES} bytes that are no messages of the protocol"
        return None

    async def send(self, message: dict[str, Any]) -> None:
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.stop(f"it left more than {MAX_UNREAD_BYTES} bytes of answers unread")
        try:
            if self.problem is not None:
                raise ConnectionError(self.problem)
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await self._writer.drain()
            self._unanswered -= "method" not in message
        except ConnectionError:
            if "method" in message:  # an unread response is no error
                raise

    async def close(self) -> None:
        if not self._writer.transport.is_closing():
            # what an agent did not read would keep a half-closed pipe open
            self._writer.transport.abort()
        self.hang_up()
        await asyncio.sleep(0)  # the loop closes both in its next rounds
        await asyncio.sleep(0)

    def stop(self, problem: str) -> None:
        """Stop reading: a bound was exceeded."""
        self.problem = self.problem or problem
        self.hang_up()

    def hang_up(self) -> None:
        """Stop reading after the data that has arrived."""
        if not self._read_transport.is_closing():
            self._read_transport.close()

    async def _line(self) -> bytes | None:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE_BYTES:
                self.problem = f"it wrote a line of more than {MAX_LINE_BYTES} bytes"
                return None
            chunk = await self._reader.read(CHUNK_BYTES)
            if not chunk:
                return None
            self._buffer += chunk
            self._total_bytes += len(chunk)
            if self._total_bytes > MAX_TURN_BYTES:
                self.problem = f"it wrote more than {MAX_TURN_BYTES} bytes in one turn"
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the message in a line, or None if it is not one that the library can take."""
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id", 0), int | str | None):
        return None
    if not isinstance(message.get("method", ""), str):
        return None
    error = message.get("error")
    if error is not None and not (
        isinstance(error, dict) and isinstance(error.get("message", ""), str)
    ):
        return None
    return message


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
