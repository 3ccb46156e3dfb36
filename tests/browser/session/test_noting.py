"""Pages that a session indexes by itself, with a scripted browser."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from uncaged_browser.knowledge.index import KnowledgeIndex, knowledge_path
from uncaged_browser.operations import Navigate, Operation
from uncaged_browser.scope import EVERYWHERE, BrowserScope
from uncaged_browser.secrets import NO_BOUND_SECRETS, BoundSecrets
from uncaged_browser.session.noting import PageNotes
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.settings import BrowserSettings

WIKI, BANK = "https://wiki.example.org/", "https://bank.example.org/"


class ShownTabs:
    """Tabs by id, each with an address; the current one is ``1``."""

    def __init__(self, tabs: Mapping[str, str], *, cut: bool = False) -> None:
        """Args: cut: their pages are longer than what is read."""
        self.tabs = tabs
        self.cut = cut

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        del secrets, scope
        tab = operation.tab or "1"
        answer = {"tab": tab, "url": self.tabs[tab], "title": f"Tab {tab}", "text": "Some words"}
        return {**answer, "truncated": True} if self.cut else answer

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("tabs", "tab", "indexed"),
    [
        ({"1": WIKI}, None, [WIKI]),
        ({"1": BANK, "2": WIKI}, "2", [WIKI]),
        ({"1": BANK}, None, []),
        ({"1": WIKI, "2": BANK}, "2", []),
    ],
    ids=["the current tab", "another tab", "a page that moved on", "another tab that moved on"],
)
def test_only_pages_of_hosts_that_are_on_are_indexed(
    store: Store, tabs: Mapping[str, str], tab: str | None, indexed: list[str]
) -> None:
    """The tab that was loaded is read, and left out if it shows a page of another host by then."""
    notes = PageNotes(store, lambda: BrowserSettings(knowledge=("wiki.example.org",)), lambda: 1)
    answer = {"url": WIKI, "title": "Wiki", **({} if tab is None else {"tab": tab})}
    operation = Navigate(url=WIKI, tab=tab)
    assert asyncio.run(notes.note(ShownTabs(tabs), operation, answer)) == ""
    assert [page.url for page in KnowledgeIndex(knowledge_path(store)).pages()] == indexed


def test_a_page_that_was_cut_is_not_indexed(store: Store) -> None:
    """A field for a password may be in the rest; the reason is returned."""
    notes = PageNotes(store, lambda: BrowserSettings(knowledge=("wiki.example.org",)), lambda: 1)
    shown = ShownTabs({"1": WIKI}, cut=True)
    reason = asyncio.run(notes.note(shown, Navigate(url=WIKI), {"url": WIKI, "title": "Wiki"}))
    assert "too long" in reason
    assert KnowledgeIndex(knowledge_path(store)).pages() == []
