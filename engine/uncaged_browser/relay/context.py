"""Tabs of the person's browser under control, as one context that performs operations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..driving.context import DrivenContext
from ..problems import BrowserProblem
from ..scope import BrowserScope
from .link import ExtensionLink
from .protocol import ProtocolRelay

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

__all__ = ["ExtensionContext", "shown_tab"]

PAUSE_S = 0.01


def shown_tab(tab: dict[str, Any]) -> str:
    """Return the address that a tab is at, or is loading."""
    return str(tab.get("pendingUrl") or tab.get("url") or "")


class ExtensionContext(DrivenContext):
    """Tabs of one connection to the extension. A tab's id is that of the browser."""

    def __init__(
        self,
        context: BrowserContext,
        scope: BrowserScope,
        link: ExtensionLink,
        relay: ProtocolRelay,
    ) -> None:
        self._link = link
        self._relay = relay
        super().__init__(context, scope, self._id_of_target)

    async def take(self, tab: int) -> Page:
        """Attach a tab of the person's, which becomes the current one; one that is attached is only
        chosen.

        Raises:
            BrowserProblem: the browser refuses, or the tab is closed.
        """
        await self._relay.attach(tab)
        page = await self._page_of(tab)
        self.tabs.choose(page)
        return page

    async def revive(self, page: Page, timeout_s: float) -> Page:
        """Load a crashed tab again; the debugger leaves it in between, so that Playwright gets it
        as new.
        """
        tab = int(self.tabs.id_of(page))
        try:
            await self._relay.detach(tab)
            await self._link.call("tabs.reload", tab)
        except BrowserProblem:  # the browser's own page that crashed on request
            await self._link.call("tabs.update", tab, {"url": page.url})
            await self._relay.detach(tab)
        new = await self.take(tab)
        await new.wait_for_load_state("load", timeout=timeout_s * 1000)
        return new

    async def expel(self, page: Page) -> None:
        """Empty a tab of ours that left the scope; one of the person's is let go as it is."""
        tab = int(self.tabs.id_of(page))
        if tab in self._relay.opened:
            await super().expel(page)
        else:
            await self._relay.detach(tab)

    async def _page_of(self, tab: int) -> Page:
        """Wait for the page of a tab that was attached."""
        while True:
            await self.tabs.settle()
            for page in self.tabs.pages:
                if self.tabs.id_of(page) == str(tab) and not self.tabs.has_crashed(page):
                    return page
            if tab not in self._relay.sessions.tabs:
                raise BrowserProblem("closed", f"tab {tab} was closed")
            await asyncio.sleep(PAUSE_S)

    async def _id_of_target(self, page: Page) -> str | None:
        from playwright.async_api import Error

        try:
            session = await self.context.new_cdp_session(page)
            reply = await session.send("Target.getTargetInfo")
        except Error:
            return None
        found = self._relay.sessions.by_target(reply["targetInfo"]["targetId"])
        return None if found is None else str(found.tab)
