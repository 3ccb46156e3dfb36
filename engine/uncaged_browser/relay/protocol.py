"""Relay of the Chrome DevTools Protocol: Playwright connects to it as to a browser, and the
extension's debugger performs the commands in the tabs under control.

The relay answers commands to the browser itself; commands to a tab, frame or worker pass through.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Collection, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ..operations import MAX_TIMEOUT_S
from ..problems import BrowserProblem
from .commands import BROWSER_SESSION, DEBUGGER_VERSION, BrowserCommands, Parameters
from .link import ExtensionLink
from .listener import prompt_socket, quiet_logger
from .replies import read_target
from .sessions import ControlledTab, ProtocolSessions

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

__all__ = ["ProtocolRelay"]

COMMAND_LIMIT_S = MAX_TIMEOUT_S + 5.0
"""A command may wait in the page for as long as an operation may."""
ATTACHED_ALREADY = "already attached"


class ProtocolRelay:
    """Relay for one connection of Playwright. opened: the tabs that were opened through it or by
    its tabs; the caller keeps it beyond the relay's life.
    """

    def __init__(self, link: ExtensionLink, opened: set[int]) -> None:
        self.opened = opened
        self.sessions = ProtocolSessions()
        self._link = link
        self._secret = secrets.token_urlsafe(32)
        self._client: ServerConnection | None = None
        self._server: Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._attaching = asyncio.Lock()
        self._outgoing: asyncio.Queue[str | None] = asyncio.Queue()
        self._commands = BrowserCommands(link, self.sessions, opened, self.attach)

    async def start(self) -> str:
        """Listen for one connection and return the address, which has a secret path."""
        from websockets.asyncio.server import serve

        opened = prompt_socket(0)
        self._server = await serve(
            self._serve,
            sock=opened,
            process_request=self._check,
            max_size=None,
            compression=None,
            ping_interval=None,
            server_header=None,
            logger=quiet_logger(),
        )
        self._link.subscribe(self._report)
        return f"ws://127.0.0.1:{opened.getsockname()[1]}/{self._secret}"

    async def aclose(self) -> None:
        """Leave all tabs as they are, without the debugger, and end Playwright's connection."""
        with suppress(ValueError):
            self._link.unsubscribe(self._report)
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            self._server.close()
        for tab in self.sessions.tabs:  # sent only: the extension may not answer
            with suppress(BrowserProblem):
                await self._link.request("debugger.detach", {"tabId": tab})
        if self._server is not None:
            await self._server.wait_closed()

    async def attach(self, tab: int) -> ControlledTab:
        """Attach the debugger to a tab unless it is, and report the tab to Playwright.

        Raises:
            BrowserProblem: the browser refuses, as for its own pages.
        """
        async with self._attaching:
            if tab in self.sessions.tabs:
                return self.sessions.tabs[tab]
            await self._attach_debugger({"tabId": tab})
            reply = await self._link.call(
                "debugger.sendCommand", {"tabId": tab}, "Target.getTargetInfo"
            )
            found = self.sessions.add(tab, {**read_target(reply), "attached": True})
        event = {
            "sessionId": found.session,
            "targetInfo": found.info,
            "waitingForDebugger": False,
        }
        self._send({"method": "Target.attachedToTarget", "params": event})
        return found

    async def _attach_debugger(self, debuggee: dict[str, int]) -> None:
        try:
            await self._link.call("debugger.attach", debuggee, DEBUGGER_VERSION)
        except BrowserProblem as exc:
            if ATTACHED_ALREADY not in str(exc):
                raise
            # by this extension before its service worker was started again; by another one, the
            # second call fails, too
            await self._link.call("debugger.detach", debuggee)
            await self._link.call("debugger.attach", debuggee, DEBUGGER_VERSION)

    async def detach(self, tab: int) -> None:
        """Take the debugger from a tab, which then is closed for Playwright."""
        await self._link.call("debugger.detach", {"tabId": tab})
        self._remove(tab)

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        path = f"/{self._secret}"
        if (
            self._client is None
            and secrets.compare_digest(request.path.encode(), path.encode())
            and "Origin" not in request.headers
        ):
            self._client = connection
            return None
        return connection.respond(HTTPStatus.FORBIDDEN, "")

    async def _serve(self, connection: ServerConnection) -> None:
        """Answer Playwright's commands until it or the extension is gone."""
        from websockets.exceptions import ConnectionClosed

        helpers = [
            asyncio.create_task(self._write(connection)),
            asyncio.create_task(self._close_after_extension(connection)),
        ]
        try:
            with suppress(ConnectionClosed):
                async for text in connection:
                    await self._receive(json.loads(text))
        finally:
            for helper in helpers:
                helper.cancel()

    async def _write(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while (text := await self._outgoing.get()) is not None:
                await connection.send(text)

    async def _close_after_extension(self, connection: ServerConnection) -> None:
        await self._link.wait_closed()
        await connection.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        self._outgoing.put_nowait(json.dumps(message))

    async def _receive(self, command: Mapping[str, Any]) -> None:
        """Start a command. Those of tabs are sent at once, so that they keep their order."""
        session, method = command.get("sessionId"), str(command["method"])
        parameters = command.get("params", {})
        debuggee = None if session is None else self.sessions.debuggee(session)
        if debuggee is None or self._is_own(session, method):
            self._spawn(self._answer(command, self._perform(session, method, parameters)))
            return

        def answer(result: Any, problem: BrowserProblem | None) -> None:
            """Reply at once: Playwright relies on the order of replies and events."""
            self._send(_outcome(command, result, problem))

        parts = ("debugger.sendCommand", debuggee, method, parameters)
        try:
            await self._link.request(*parts, on_reply=answer, timeout_s=COMMAND_LIMIT_S)
        except BrowserProblem as exc:
            answer(None, exc)

    def _is_own(self, session: str | None, method: str) -> bool:
        """Whether the relay itself answers a command that names a tab."""
        return method == "Target.getTargetInfo" and self.sessions.alias(session or "") is not None

    async def _answer(self, command: Mapping[str, Any], result: Awaitable[object]) -> None:
        try:
            outcome = _outcome(command, await result, None)
        except BrowserProblem as exc:
            outcome = _outcome(command, None, exc)
        self._send(outcome)

    async def _perform(self, session: str | None, method: str, parameters: Parameters) -> object:
        found = self.sessions.alias(session or "")
        if found is not None:
            return {"targetInfo": found.info}
        if session is not None and session != BROWSER_SESSION:
            raise BrowserProblem("closed", "Session with given id not found.")
        return await self._commands.perform(method, parameters)

    def _report(self, event: str, parameters: list[Any]) -> None:
        """Pass an event of the extension on to Playwright."""
        match event:
            case "debugger.onEvent":
                self._report_protocol(*parameters)
            case "debugger.onDetach":
                if "sessionId" not in parameters[0]:
                    self._remove(parameters[0].get("tabId"))
            case "tabs.onRemoved":
                self.opened.discard(parameters[0])
                self._remove(parameters[0])
            case "tabs.onCreated":
                if _opened_by_page(parameters[0], self.sessions.tabs):
                    self._spawn(self._adopt(parameters[0]["id"]))
            case _:
                pass

    def _report_protocol(
        self, source: Mapping[str, Any], method: str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        tab = self.sessions.tabs.get(source.get("tabId", -1))
        if tab is None:
            return
        parameters = parameters or {}
        if method == "Target.attachedToTarget":
            self.sessions.add_child(parameters["sessionId"], tab.tab)
        elif method == "Target.detachedFromTarget":
            self.sessions.remove_child(parameters["sessionId"])
        session = source.get("sessionId", tab.session)
        self._send({"method": method, "params": parameters, "sessionId": session})

    async def _adopt(self, tab: int) -> None:
        """Attach a tab that a page under control opened."""
        with suppress(BrowserProblem):
            await self.attach(tab)
            self.opened.add(tab)

    def _remove(self, tab: int) -> None:
        removed = self.sessions.remove(tab)
        if removed is not None:
            event = {"sessionId": removed.session, "targetId": removed.target}
            self._send({"method": "Target.detachedFromTarget", "params": event})

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _opened_by_page(created: Mapping[str, Any], controlled: Collection[int]) -> bool:
    """Whether a page under control opened a new tab; an empty one of the person's has an opener."""
    url = created.get("pendingUrl") or created.get("url") or "about:blank"
    return created.get("openerTabId") in controlled and url.startswith(("http", "about:blank"))


def _outcome(
    command: Mapping[str, Any], result: object, problem: BrowserProblem | None
) -> dict[str, Any]:
    """Return the reply to a command, as the protocol has it."""
    session = {} if "sessionId" not in command else {"sessionId": command["sessionId"]}
    if problem is not None:
        error = {"code": -32000, "message": str(problem)}
        return {"id": command["id"], **session, "error": error}
    return {"id": command["id"], **session, "result": result or {}}
