"""Connections of the listener, with bounds that uvicorn's own lack: the number of connections, the
time until a request, and the time in which a client must read.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MOST_CONNECTIONS = 256
CLOSE_S = 2.0
READ_S = 20.0
"""Time in which an HTTP client must read, so that what waits for it becomes less."""


class HttpConnection(H11Protocol):
    """HTTP connection that ends if the head of a request does not arrive within the keep-alive
    time, however slowly it is sent, or if its client does not read.
    """

    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._cancel_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reading(None)

    def _await_reading(self, before: int | None) -> None:
        """End the connection if nothing was read for a while. before: bytes that waited then."""
        left = self.transport.get_write_buffer_size()
        if before is not None and left >= before:
            self.transport.abort()
            return
        self._unread = self.loop.call_later(READ_S, self._await_reading, left)

    def resume_writing(self) -> None:
        self._cancel_unread()
        super().resume_writing()

    def _cancel_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()

    def _await_request(self) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self._end_if_idle)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _end_if_idle(self) -> None:
        """End the connection unless a request is being answered, or it is a WebSocket by now."""
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.transport.get_protocol() is self:
            self.transport.abort()


class WebSocketConnection(WebSocketsSansIOProtocol):
    """WebSocket connection whose client must read: uvicorn waits without limit until a closed
    connection has sent what is left.
    """

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()  # replies to pings are written without flow control

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_soon()

    def shutdown(self) -> None:
        super().shutdown()
        self._abort_soon()

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self._abort_soon()

    def _abort_soon(self) -> None:
        if not self.disconnected:
            self.loop.call_later(CLOSE_S, self.transport.abort)
