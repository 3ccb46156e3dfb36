"""Tabs of a browser context: their ids, the current one, and how one is found by words."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from ..operations import Switch
from ..problems import BrowserProblem
from ..scope import EVERYWHERE, BrowserScope

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

__all__ = ["ContextTabs", "tab_to_show"]

MAX_TABS = 50


class ContextTabs:
    """Tabs of one context. A tab's id is a number that this context gives once, or the browser's
    own.
    """

    def __init__(
        self,
        context: BrowserContext,
        identify: Callable[[Page], Awaitable[str | None]] | None = None,
    ) -> None:
        """Args: identify: returns the browser's id of a tab, or None if it is closed by then."""
        self._context = context
        self._identify = identify
        self._ids: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self._unnamed: set[asyncio.Future[None]] = set()
        self._numbers = itertools.count(1)
        self._current: Page | None = None
        self._known: WeakSet[Page] = WeakSet()
        self._crashed: WeakSet[Page] = WeakSet()
        context.on("page", self._add)
        for page in context.pages:
            self._add(page)

    def _add(self, page: Page) -> None:
        if page in self._known:
            return
        self._known.add(page)
        self._current = page
        page.on("crash", self._crashed.add)
        if self._identify is None:
            self._ids[page] = str(next(self._numbers))
            return
        naming = asyncio.ensure_future(self._name(page, self._identify))
        self._unnamed.add(naming)
        naming.add_done_callback(self._unnamed.discard)

    async def _name(self, page: Page, identify: Callable[[Page], Awaitable[str | None]]) -> None:
        id = await identify(page)
        if id is not None:
            self._ids[page] = id

    async def settle(self) -> None:
        """Wait until each tab has its id."""
        while self._unnamed:
            await asyncio.gather(*self._unnamed)

    def id_of(self, page: Page) -> str:
        """Return the id of a tab; empty if it was closed before it had one."""
        return self._ids.get(page, "")

    def has_crashed(self, page: Page) -> bool:
        """Whether the page of a tab crashed."""
        return page in self._crashed

    def replace(self, page: Page, new: Page) -> None:
        """Give the id of a tab to the one that takes its place, and its being the current one."""
        self._ids[new] = self._ids[page]
        del self._ids[page]
        if self._current is page:
            self._current = new

    @property
    def pages(self) -> list[Page]:
        """Return the open tabs, the oldest first."""
        return [page for page in self._context.pages if not page.is_closed()]

    @property
    def current(self) -> Page | None:
        """Return the current tab: the one opened or chosen last; None without tabs."""
        if self._current is None or self._current.is_closed():
            self._current = self.pages[-1] if self.pages else None
        return self._current

    def choose(self, page: Page) -> None:
        """Make a tab the current one."""
        self._current = page

    def page(self, id: str | None) -> Page:
        """Return a tab by its id, or the current one.

        Raises:
            BrowserProblem: there is none, or its page crashed.
        """
        page = self.page_even_crashed(id)
        if self.has_crashed(page):
            raise BrowserProblem(
                "crashed", f"the page of tab {self.id_of(page)} crashed; reload it or close the tab"
            )
        return page

    def page_even_crashed(self, id: str | None) -> Page:
        """Return a tab by its id, or the current one.

        Raises:
            BrowserProblem: there is none.
        """
        if id is None:
            page = self.current
            if page is None:
                raise BrowserProblem("closed", "no tab is open; open an address first")
        else:
            found = [one for one in self.pages if self.id_of(one) == id]
            if not found:
                raise BrowserProblem("closed", f"tab {id} is not open")
            page = found[0]
        return page

    async def new(self) -> Page:
        """Open an empty tab.

        Raises:
            BrowserProblem: too many are open.
        """
        if len(self.pages) >= MAX_TABS:
            raise BrowserProblem("blocked", f"{MAX_TABS} tabs are open; close some first")
        page = await self._context.new_page()
        self._add(page)
        self._current = page
        return page

    async def documents(self, scope: BrowserScope) -> list[dict[str, object]]:
        """Return the tabs within a scope as JSON data."""
        return [
            await self.document(page)
            for page in self.pages
            if scope == EVERYWHERE or scope.allows(page.url)
        ]

    async def document(self, page: Page) -> dict[str, object]:
        """Return a tab as JSON data."""
        await self.settle()
        return {
            "tab": self.id_of(page),
            "url": page.url,
            "title": await title_of(page),
            "current": page is self.current,
        }


def tab_to_show(tabs: Sequence[dict[str, object]], operation: Switch) -> dict[str, object]:
    """Return the tab that an operation switches to.

    Args:
        tabs: those that the caller may use, as JSON data.
    Raises:
        BrowserProblem: it names none of them, or several.
    """
    if (operation.tab is None) is (not operation.words.strip()):
        raise BrowserProblem("unsupported", "switch needs a tab's id or words of its title")
    if operation.tab is None:
        return _tab_with_words(tabs, operation.words)
    found = next((tab for tab in tabs if tab["tab"] == operation.tab), None)
    if found is None:
        raise BrowserProblem("closed", f"tab {operation.tab} is not open")
    return found


def _tab_with_words(tabs: Sequence[dict[str, object]], words: str) -> dict[str, object]:
    """Return the tab, as JSON data, whose title or address has the words.

    Raises:
        BrowserProblem: none has, or several have.
    """
    wanted = words.casefold().split()
    described = [(tab, f"{tab['title']} {tab['url']}") for tab in tabs]
    found = [
        (tab, text) for tab, text in described if all(word in text.casefold() for word in wanted)
    ]
    if not found:
        raise BrowserProblem("not-found", f"no tab's title or address has the words {words!r}")
    if len(found) > 1:
        candidates = [text for _, text in found[:5]]
        raise BrowserProblem(
            "ambiguous",
            f"{len(found)} tabs have the words {words!r}: {'; '.join(candidates)}",
            candidates=candidates,
        )
    return found[0][0]


async def title_of(page: Page) -> str:
    """Return the title of a page; empty while it is changing or if it crashed."""
    from playwright.async_api import Error

    try:
        return await page.title()
    except Error:
        return ""
