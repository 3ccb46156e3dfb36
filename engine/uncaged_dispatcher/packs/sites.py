"""Site packs: packs whose sentences are read only while the browser session shows a page of their
hosts. The package of the browser registers how the page is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

from uncaged_bundles.storage.store import Store
from uncaged_engine.services import entry_points as plugins

from .pack import Pack

__all__ = ["GROUP", "CurrentSite", "ShownPage"]

GROUP = "uncaged_workflow.pages"
SHOWN_CHARACTERS = 120


class ShownPage(Protocol):
    """A registered object: the page that a person or a conversation has before it."""

    def url(self) -> str | None:
        """Return its address; None if no page is open."""

    def covers(self, url: str, hosts: Sequence[str], patterns: Sequence[str]) -> bool:
        """Whether an address is at one of the hosts and fits one of the patterns."""


class CurrentSite:
    """The page at the time of one sentence. It is asked for once, and only for a site pack."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def lack(self, pack: Pack | None) -> str | None:
        """Return why a pack is not read now; None if it is."""
        if pack is None or not pack.is_of_site:
            return None
        places = ", ".join((*pack.hosts, *pack.url_patterns))
        if any(page.covers(url, pack.hosts, pack.url_patterns) for page, url in self._pages if url):
            return None
        shown = next((url for _, url in self._pages if url), None)
        now = "no page is open" if shown is None else f"the page is {shown[:SHOWN_CHARACTERS]}"
        return f"the pack {pack.name} is for pages of {places}; {now}"

    @cached_property
    def _pages(self) -> list[tuple[ShownPage, str | None]]:
        found: list[tuple[ShownPage, str | None]] = []
        for name in plugins.names(group=GROUP):
            make: Callable[[Store], ShownPage] = plugins.find(name, group=GROUP)  # type: ignore[assignment]  # what the group's objects are
            page = make(self._store)
            found.append((page, page.url()))
        return found
