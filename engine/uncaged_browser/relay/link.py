"""Connection to one extension: calls with a time limit, and the events that it reports."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uncaged_bundles.records import dataclass
from websockets.exceptions import ConnectionClosed

from ..problems import BrowserProblem
from .panel import PanelContent

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

__all__ = ["CALL_LIMIT_S", "ExtensionLink", "Subscriber"]

CALL_LIMIT_S = 20.0
SHOWN_CHARACTERS = 300
DUPLICATE = 4001
Subscriber = Callable[[str, list[Any]], None]
"""Receives the name of an event, such as ``tabs.onCreated``, and its parameters."""
ReplyReceiver = Callable[[Any, BrowserProblem | None], None]
"""Receives the result of a call, or why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call without its reply. limit: ends it in time."""

    method: str
    on_reply: ReplyReceiver
    limit: asyncio.TimerHandle


class ExtensionLink:
    """One extension that is paired and connected. client: its id, which it keeps. browser: the id
    of one start of its browser; tab ids are valid within it.
    """

    def __init__(
        self,
        connection: ServerConnection,
        *,
        client: str,
        browser: str,
        user_agent: str,
        panel: PanelContent | None = None,
    ) -> None:
        """Args: panel: what the extension's side panel shows."""
        self._panel = panel
        self._replies: set[asyncio.Task[None]] = set()
        self.client = client
        self.browser = browser
        self.user_agent = user_agent
        self._connection = connection
        self._numbers = itertools.count(1)
        self._calls: dict[int, PendingCall] = {}
        self._subscribers: list[Subscriber] = []
        self._gone = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Return whether calls can be made."""
        return not self._gone.is_set()

    async def wait_closed(self) -> None:
        """Wait until the extension is gone."""
        await self._gone.wait()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Report each event from now on to a subscriber."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Report no more events to a subscriber."""
        self._subscribers.remove(subscriber)

    async def call(self, method: str, *parameters: Any, timeout_s: float = CALL_LIMIT_S) -> Any:
        """Call a method of the extension's browser and return its result.

        Raises:
            BrowserProblem: it failed, is unknown, took too long, or the extension is gone.
        """
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(result: Any, problem: BrowserProblem | None) -> None:
            if reply.done():
                return  # the caller was cancelled
            if problem is None:
                reply.set_result(result)
            else:
                reply.set_exception(problem)

        await self.request(method, *parameters, on_reply=settle, timeout_s=timeout_s)
        return await reply

    async def request(
        self,
        method: str,
        *parameters: Any,
        on_reply: ReplyReceiver = lambda _result, _problem: None,
        timeout_s: float = CALL_LIMIT_S,
    ) -> None:
        """Send a call. Calls reach the browser in the order of their requests; replies are reported
        in their order among the events.

        Raises:
            BrowserProblem: the extension is gone.
        """
        if not self.is_open:
            raise _gone(method)
        number = next(self._numbers)
        limit = asyncio.get_running_loop().call_later(timeout_s, self._expire, number, timeout_s)
        self._calls[number] = PendingCall(method=method, on_reply=on_reply, limit=limit)
        message = {"channel": "browserControl", "id": number, "method": method}
        try:
            await self._connection.send(json.dumps({**message, "params": parameters}))
        except ConnectionClosed:
            self._settle(number, None, _gone(method))

    async def serve(self) -> None:
        """Read the extension's messages until it is gone; calls that wait then fail."""
        try:
            with suppress(ConnectionClosed, ValueError, TypeError, AttributeError):
                async for text in self._connection:
                    await self._receive(json.loads(text))
        finally:
            self._gone.set()
            for number, call in list(self._calls.items()):
                self._settle(number, None, _gone(call.method))

    async def replace(self) -> None:
        """Close the connection because the same client has a newer one."""
        self._gone.set()
        await self._connection.close(DUPLICATE, "duplicate")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _receive(self, message: dict[str, Any]) -> None:
        if message.get("channel") != "agentService":
            call = self._calls.get(message["id"])
            if call is not None:
                self._settle(
                    message["id"], message.get("result"), _problem_of(message, call.method)
                )
        elif "event" in message:
            for subscriber in list(self._subscribers):
                subscriber(message["event"], message["params"])
        else:
            reply = asyncio.ensure_future(self._serve_call(message))
            self._replies.add(reply)
            reply.add_done_callback(self._replies.discard)

    async def _serve_call(self, message: dict[str, Any]) -> None:
        """Reply to a call of the extension: to keep itself awake, or for its side panel."""
        reply = {"channel": "agentService", "id": message.get("id")}
        match message.get("method"):
            case "ping":
                reply["result"] = None
            case "panel" if self._panel is not None:
                reply["result"] = await self._panel()
            case method:
                reply |= {"unknown": True, "error": f"unknown method {method!r}"}
        with suppress(ConnectionClosed):
            await self._connection.send(json.dumps(reply))

    def _settle(self, number: int, result: Any, problem: BrowserProblem | None) -> None:
        call = self._calls.pop(number, None)
        if call is not None:
            call.limit.cancel()
            call.on_reply(result, problem)

    def _expire(self, number: int, timeout_s: float) -> None:
        method = self._calls[number].method
        self._settle(
            number,
            None,
            BrowserProblem(
                "timeout", f"{method}: the extension did not answer within {timeout_s:g} s"
            ),
        )


def _problem_of(message: dict[str, Any], method: str) -> BrowserProblem | None:
    if message.get("unknown"):
        return BrowserProblem("unsupported", f"{method}: the extension has no such method")
    if "error" in message:
        return BrowserProblem("refused", f"{method}: {str(message['error'])[:SHOWN_CHARACTERS]}")
    return None


def _gone(method: str) -> BrowserProblem:
    return BrowserProblem("closed", f"{method}: the connection to the extension was lost")
