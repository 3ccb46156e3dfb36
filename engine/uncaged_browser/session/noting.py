"""Pages that a session's own tabs opened: noted while the resolver ``history`` is on, and indexed
on the hosts that a person switched on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.settings import BrowserSettings

from ..control import BrowserControl
from ..knowledge.index import KnowledgeIndex, PageSource, knowledge_path
from ..knowledge.pages import KnownPage, bare_address, reading_page
from ..lookup.providers import shows_results
from ..operations import Operation, read_operation
from ..problems import BrowserProblem
from ..scope import BrowserScope

__all__ = ["PageNotes"]


class PageNotes:
    """Notes pages in the index of a store."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], BrowserSettings],
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Args: settings: returns those that config.yaml has now."""
        self._store = store
        self._settings = settings
        self._clock_ms = clock_ms
        self._read: tuple[int, BrowserSettings] | None = None

    async def note(self, control: BrowserControl, operation: Operation, answer: object) -> str:
        """Note the page that an operation loaded; return why one of a host that is switched on was
        not indexed, else an empty text.
        """
        loads = operation.effect == "navigates" or getattr(operation, "wait", False)
        if not loads or not isinstance(answer, Mapping) or "status" in answer:
            return ""
        url = bare_address(str(answer.get("url", "")))
        settings = self._current()
        if not url or settings is None or shows_results(url, settings):
            return ""
        if not _is_on(settings, url):
            if "history" in settings.resolvers:
                visited = KnownPage(
                    url=url, title=str(answer.get("title", "")), time_ms=self._clock_ms()
                )
                await self._add(visited, "visit")
            return ""
        tab = answer.get("tab", operation.tab)
        try:
            page = await self._page(control, None if tab is None else str(tab))
        except BrowserProblem as exc:
            return str(exc)
        if not _is_on(settings, page.url):  # the tab shows another page by now
            return ""
        if page.may_have_secrets:
            return page.private
        return await self._add(page, "page")

    def _current(self) -> BrowserSettings | None:
        """Return the settings, which are read again when their file has changed; None if they are
        no settings.
        """
        try:
            changed = self._store.config_path.stat().st_mtime_ns
        except OSError:
            changed = 0
        if self._read is None or self._read[0] != changed:
            try:
                self._read = (changed, self._settings())
            except UncagedError:
                return None
        return self._read[1]

    async def _page(self, control: BrowserControl, tab: str | None) -> KnownPage:
        reading = reading_page(self._clock_ms(), tab)
        answer: Any = None
        while True:
            try:
                wanted = reading.send(answer)
            except StopIteration as stop:
                page: KnownPage = stop.value
                return page
            answer = await control.perform(read_operation(wanted))

    async def _add(self, page: KnownPage, source: PageSource) -> str:
        index = KnowledgeIndex(knowledge_path(self._store))
        try:
            await asyncio.to_thread(index.add, page, source)
        except UncagedError as exc:  # the page was opened all the same
            return str(exc)
        return ""


def _is_on(settings: BrowserSettings, url: str) -> bool:
    """Whether a person switched on the indexing of the host of an address."""
    return BrowserScope.of(settings.knowledge).allows(url)
