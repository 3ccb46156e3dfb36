"""Guard of a context: holds back the requests of acting steps that change something on a server,
until they are released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uncaged_bundles.records import dataclass

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route, WebSocketRoute

__all__ = ["RequestGuard"]

READING = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_HELD = 100
MAX_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRequest:
    """text: method and address. send, refuse: what becomes of it."""

    text: str
    send: Callable[[], Awaitable[object]]
    refuse: Callable[[], Awaitable[object]]


class RequestGuard:
    """Holds requests of other methods than GET, HEAD and OPTIONS, and messages of WebSockets, while
    an acting operation is the last one; forms that are sent are held after any operation.
    """

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._acts = False
        self._passes = False
        self._held: list[HeldRequest] = []

    async def watch(self, context: BrowserContext) -> None:
        """Route all requests of a context through the guard."""
        await context.route("**/*", self._request)
        await context.route_web_socket("**/*", self._socket)

    def begin(self, *, acts: bool, passes: bool) -> None:
        """Prepare for an operation. passes: what it sends is let through."""
        self._acts, self._passes = acts, passes

    @property
    def held(self) -> list[str]:
        """Return the requests that are held, as texts for people."""
        return [one.text for one in self._held]

    async def release(self, *, send: bool) -> None:
        """Send the requests that are held, or refuse them."""
        from playwright.async_api import Error

        self._passes = send
        held, self._held = self._held, []
        self.arrived.clear()
        for one in held:
            with suppress(Error):
                await (one.send() if send else one.refuse())

    async def _request(self, route: Route) -> None:
        request = route.request
        is_page = request.is_navigation_request()
        if request.method in READING or self._passes or not (self._acts or is_page):
            await route.continue_()
        elif len(self._held) >= MAX_HELD:
            await route.abort()
        else:
            # without content a page stays as it is
            refuse: Any = (lambda: route.fulfill(status=204)) if is_page else route.abort
            self._hold(f"{request.method} {request.url}", route.continue_, refuse)

    def _socket(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(message: str | bytes) -> None:
            if self._passes or not self._acts:
                server.send(message)
            elif len(self._held) < MAX_HELD:
                self._hold(
                    f"message to {socket.url}", _later(server.send, message), _later(len, "")
                )

        socket.on_message(forward)

    def _hold(
        self,
        text: str,
        send: Callable[[], Awaitable[object]],
        refuse: Callable[[], Awaitable[object]],
    ) -> None:
        self._held.append(HeldRequest(text=text[:MAX_SHOWN], send=send, refuse=refuse))
        self.arrived.set()


def _later(action: Callable[[Any], object], value: object) -> Callable[[], Awaitable[object]]:
    async def act() -> None:
        action(value)

    return act
