"""Commands of the Chrome DevTools Protocol to the browser as a whole, answered for Playwright."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from ..problems import BrowserProblem
from .link import ExtensionLink
from .replies import read_tab, read_tabs
from .sessions import ControlledTab, ProtocolSessions

__all__ = ["BROWSER_SESSION", "DEBUGGER_VERSION", "BrowserCommands", "Parameters"]

DEBUGGER_VERSION = "1.3"
BROWSER_SESSION = "browser"
"""Id of a further session of the browser itself."""
Parameters = Mapping[str, Any]


class BrowserCommands:
    """Performs the commands that Playwright needs; others are refused by name."""

    def __init__(
        self,
        link: ExtensionLink,
        sessions: ProtocolSessions,
        opened: set[int],
        attach: Callable[[int], Awaitable[ControlledTab]],
    ) -> None:
        """Args: opened: receives the tabs that are created. attach: attaches the debugger."""
        self._opened = opened
        self._sessions = sessions
        self._attach = attach
        self._link = link
        self._methods: Mapping[str, Callable[[Parameters], Awaitable[object]]] = {
            "Browser.close": self._nothing,
            "Browser.getVersion": self._version,
            "Browser.setDownloadBehavior": self._nothing,
            "Target.attachToBrowserTarget": self._browser_session,
            "Target.attachToTarget": self._further_session,
            "Target.closeTarget": self._close,
            "Target.createTarget": self._create,
            "Target.detachFromTarget": self._nothing,
            "Target.getTargetInfo": self._target,
            "Target.setAutoAttach": self._begin,
        }

    async def perform(self, method: str, parameters: Parameters) -> object:
        """Perform a command and return its result.

        Raises:
            BrowserProblem: it failed, or is not possible.
        """
        perform = self._methods.get(method)
        if perform is None:
            raise BrowserProblem("unsupported", f"{method} is not possible through the extension")
        return await perform(parameters)

    async def _nothing(self, _: Parameters) -> object:
        return {}

    async def _version(self, _: Parameters) -> object:
        agent = self._link.user_agent
        version = agent.partition("Chrome/")[2].partition(" ")[0] or "0"
        return {
            "protocolVersion": DEBUGGER_VERSION,
            "product": f"Chrome/{version}",
            "revision": "",
            "userAgent": agent,
            "jsVersion": "",
        }

    async def _begin(self, _: Parameters) -> object:
        """Attach the tabs that were opened before and still are open."""
        present = {tab["id"] for tab in read_tabs(await self._link.call("tabs.query", {}))}
        self._opened.intersection_update(present)
        for tab in sorted(self._opened):
            with suppress(BrowserProblem):
                await self._attach(tab)
        return {}

    async def _target(self, parameters: Parameters) -> object:
        found = self._sessions.by_target(parameters.get("targetId"))
        browser = {"targetId": "browser", "type": "browser", "title": "", "url": ""}
        shared = {"attached": True, "canAccessOpener": False}
        return {"targetInfo": {**browser, **shared} if found is None else found.info}

    async def _browser_session(self, _: Parameters) -> object:
        return {"sessionId": BROWSER_SESSION}

    async def _further_session(self, parameters: Parameters) -> object:
        return {"sessionId": self._sessions.add_alias(self._tab_of(parameters))}

    async def _create(self, _: Parameters) -> object:
        wanted = {"url": "about:blank", "active": True}
        created = read_tab(await self._link.call("tabs.create", wanted))["id"]
        self._opened.add(created)
        return {"targetId": (await self._attach(created)).target}

    async def _close(self, parameters: Parameters) -> object:
        await self._link.call("tabs.remove", self._tab_of(parameters).tab)
        return {"success": True}

    def _tab_of(self, parameters: Parameters) -> ControlledTab:
        found = self._sessions.by_target(parameters.get("targetId"))
        if found is None:
            raise BrowserProblem("closed", "No target with given id found")
        return found
