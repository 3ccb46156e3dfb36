"""Control of the person's browser through the extension."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import encodable

from ..driving.context import MARGIN_S, MAX_REASON
from ..driving.tabs import tab_to_show
from ..operations import (
    Navigate,
    Open,
    OpenSettings,
    Operation,
    ShowStatus,
    StopSpeaking,
    Switch,
    Tabs,
)
from ..problems import BrowserProblem
from ..scope import EVERYWHERE, BrowserScope
from ..secrets import NO_BOUND_SECRETS, BoundSecrets
from .badge import AgentBadge
from .context import ExtensionContext, shown_tab
from .link import ExtensionLink
from .listener import ExtensionListener
from .protocol import ProtocolRelay
from .replies import read_tabs

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

__all__ = ["ExtensionControl"]

CONNECT_TIMEOUT_S = 20.0
AWAY = "no browser is connected through the extension; an extension that is paired connects within 30 s"


class ExtensionControl:
    """The browser of the extension that connected last, as a `BrowserControl`.

    The debugger is attached to tabs that operations or their pages opened, and to the one that the
    person looks at when an operation names no tab and none was used before. The person's other tabs
    are only listed.
    """

    def __init__(
        self,
        playwright: Playwright,
        listener: ExtensionListener,
        scope: BrowserScope = EVERYWHERE,
    ) -> None:
        self._playwright = playwright
        self._listener = listener
        self._scope = scope
        self._lock = asyncio.Lock()
        self._link: ExtensionLink | None = None
        self._relay: ProtocolRelay | None = None
        self._browser: Browser | None = None
        self._context: ExtensionContext | None = None
        self._current: int | None = None
        self._opened: set[int] = set()
        self._opened_in = ""
        self._badge = AgentBadge()

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        """Perform an operation; a browser whose extension is away fails it at once."""
        from playwright.async_api import Error

        link = self._listener.link
        if link is None:
            raise BrowserProblem("closed", f"{operation.do}: {AWAY}")
        try:
            async with asyncio.timeout(operation.timeout_s + 2 * MARGIN_S), self._lock:
                await self._badge.work(link, operation.do)
                return await self._perform(link, operation, secrets, scope)
        except Error as exc:
            raise BrowserProblem("closed", f"{operation.do}: {exc.message[:MAX_REASON]}") from None
        except TimeoutError:
            raise BrowserProblem(
                "timeout",
                f"{operation.do}: the browser did not answer within {operation.timeout_s:g} s",
            ) from None
        except BrowserProblem as exc:
            if link.is_open or exc.kind in ("blocked", "unsupported"):
                raise
            raise BrowserProblem(
                "closed", f"{operation.do}: the connection to the extension was lost"
            ) from None
        finally:
            await self._badge.rest(link)

    @property
    def context(self) -> ExtensionContext | None:
        """The context of the tabs under control, if there was one by now."""
        return self._context

    async def connected(self) -> ExtensionContext:
        """Return the context of the tabs under control.

        Raises:
            BrowserProblem: the extension is away.
        """
        link = self._listener.link
        if link is None:
            raise BrowserProblem("closed", AWAY)
        async with self._lock:
            return await self._connected(link)

    async def aclose(self) -> None:
        """Let go of all tabs; they stay open."""
        await self._disconnect()

    async def _perform(
        self,
        link: ExtensionLink,
        operation: Operation,
        secrets: BoundSecrets,
        scope: BrowserScope,
    ) -> object:
        match operation:  # of no tab
            case ShowStatus():
                return await self._badge.set(link, operation)
            case OpenSettings():
                await link.call("runtime.openOptionsPage")
                return {"opened": True}
            case _:
                context = await self._connected(link)
        match operation:
            case Tabs():
                answer: object = encodable(await self._tabs(link, context, scope))
            case Switch():
                answer = await self._switch(link, context, operation, scope)
            case _:
                if not isinstance(operation, Open | StopSpeaking):
                    await self._reach(link, context, operation, scope)
                answer = await context.perform(operation, secrets, scope)
        page = context.tabs.current
        self._current = None if page is None else _number(context.tabs.id_of(page))
        return answer

    async def _connected(self, link: ExtensionLink) -> ExtensionContext:
        """Return the context of a connection; Playwright is connected anew if there is none."""
        from playwright.async_api import Error

        if self._context is not None and self._link is link and self._is_connected():
            return self._context
        await self._disconnect()
        if link.browser != self._opened_in:  # its tab ids are others
            self._opened, self._opened_in, self._current = set(), link.browser, None
        self._link = link
        self._relay = ProtocolRelay(link, self._opened)
        address = await self._relay.start()
        try:
            self._browser = await self._playwright.chromium.connect_over_cdp(
                address, timeout=CONNECT_TIMEOUT_S * 1000
            )
        except Error as exc:
            raise BrowserProblem(
                "closed", f"the browser cannot be controlled: {exc.message[:MAX_REASON]}"
            ) from None
        self._context = ExtensionContext(self._browser.contexts[0], self._scope, link, self._relay)
        if self._current in self._relay.sessions.tabs:
            await self._context.take(self._current)
        return self._context

    def _is_connected(self) -> bool:
        return self._browser is not None and self._browser.is_connected()

    async def _disconnect(self) -> None:
        from playwright.async_api import Error

        relay, browser = self._relay, self._browser
        self._relay = self._browser = self._context = self._link = None
        if relay is not None:
            await relay.aclose()
        if browser is not None:
            with suppress(Error):
                await browser.close()

    async def _reach(
        self,
        link: ExtensionLink,
        context: ExtensionContext,
        operation: Operation,
        scope: BrowserScope,
    ) -> None:
        """Attach the tab that an operation is for, if it may be.

        Raises:
            BrowserProblem: it is closed, outside the scope, or one of the person's other tabs.
        """
        if operation.tab is None:
            await context.tabs.settle()
            if context.tabs.current is None and not isinstance(operation, Navigate):
                for active in await _active(link):
                    await self._take(context, active, scope)
            return
        number = _number(operation.tab)
        if self._relay is not None and number in self._relay.sessions.tabs:
            return
        tab = next((tab for tab in await _all(link) if tab["id"] == number), None)
        if tab is None:
            raise BrowserProblem("closed", f"tab {operation.tab} is not open")
        if not tab.get("active"):
            raise BrowserProblem(
                "refused", f"tab {operation.tab} is one of the person's; switch to it first"
            )
        await self._take(context, tab, scope)

    async def _take(
        self, context: ExtensionContext, tab: dict[str, Any], scope: BrowserScope
    ) -> None:
        for one in (self._scope, scope):
            one.check_tab(shown_tab(tab))
        await context.take(tab["id"])

    async def _tabs(
        self, link: ExtensionLink, context: ExtensionContext, scope: BrowserScope
    ) -> list[dict[str, object]]:
        """Return the tabs that the browser has now, those outside the scopes left out."""
        await context.tabs.settle()
        page = context.tabs.current
        current = None if page is None else _number(context.tabs.id_of(page))
        if current is None:
            current = next((tab["id"] for tab in await _active(link)), None)
        return [
            {
                "tab": str(tab["id"]),
                "url": tab.get("url", ""),
                "title": tab.get("title", ""),
                "current": tab["id"] == current,
            }
            for tab in await _all(link)
            if self._scope.allows(tab.get("url", "")) and scope.allows(tab.get("url", ""))
        ]

    async def _switch(
        self,
        link: ExtensionLink,
        context: ExtensionContext,
        operation: Switch,
        scope: BrowserScope,
    ) -> object:
        """Show a tab to the person and take it; it is found among all tabs."""
        chosen = tab_to_show(await self._tabs(link, context, scope), operation)
        number = int(str(chosen["tab"]))
        await link.call("tabs.update", number, {"active": True})
        await context.take(number)
        return await context.perform(replace(operation, tab=str(number), words=""))


async def _all(link: ExtensionLink) -> list[dict[str, Any]]:
    return read_tabs(await link.call("tabs.query", {}))


async def _active(link: ExtensionLink) -> list[dict[str, Any]]:
    """Return the tab that the person looks at, if its page is one of the web."""
    found = await link.call("tabs.query", {"active": True, "lastFocusedWindow": True})
    return [
        tab
        for tab in read_tabs(found)
        if shown_tab(tab).startswith(("http:", "https:", "about:blank"))
    ]


def _number(tab: str) -> int | None:
    return int(tab) if tab.isascii() and tab.isdigit() else None
