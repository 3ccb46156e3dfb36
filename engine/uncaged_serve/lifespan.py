"""Start and end of a route's application by ASGI's lifespan messages. At its end an application
finishes the requests that it has.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from uncaged_engine.services.listening import Message

from .routes import ServedRoute

CANCEL_S = 2.0


class RouteLifespan:
    """Task in which a route's application is started and ended. An application that handles no
    lifespan messages needs neither.
    """

    def __init__(self, route: ServedRoute) -> None:
        self.route = route
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._replies: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self, timeout_s: float) -> str:
        """Start the application; return a message if it fails or takes too long, else ""."""
        self._task = task = asyncio.create_task(self._run())
        reply = await self._exchange(task, "lifespan.startup", timeout_s)
        if reply is None and task.done():
            return ""  # it handles no lifespan messages
        if reply is None:
            problem = f"it was not ready after {timeout_s:g} s"
        elif reply["type"] == "lifespan.startup.failed":
            problem = str(reply.get("message") or "its start failed").strip().splitlines()[-1]
        else:
            return ""
        await self.cancel()
        return f"the route {self.route.name!r} is not served: {problem}"

    async def end(self, timeout_s: float) -> str:
        """End the application; return a message if it did not finish in time, else ""."""
        task = self._task
        if task is None or task.done():
            return ""
        reply = await self._exchange(task, "lifespan.shutdown", timeout_s)
        late = reply is None and not task.done()
        await self.cancel()
        return (
            f"the route {self.route.name!r} had requests left after {timeout_s:g} s" if late else ""
        )

    async def cancel(self) -> None:
        """Cancel what is left of the application's task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CANCEL_S)

    async def _exchange(
        self, task: asyncio.Task[None], kind: str, timeout_s: float
    ) -> Message | None:
        """Send a message and return the reply; None if the application ends first, or too late."""
        self._messages.put_nowait({"type": kind})
        reply = asyncio.create_task(self._replies.get())
        await asyncio.wait({reply, task}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        reply.cancel()
        return None

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        # by the protocol, an exception says that the application handles no lifespan messages
        with suppress(Exception):
            await self.route.app(scope, self._messages.get, self._replies.put)
