"""Resolution of names, with a scripted browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from uncaged_browser.knowledge.index import KnowledgeIndex
from uncaged_browser.knowledge.pages import KnownPage
from uncaged_browser.lookup.providers import filled_template
from uncaged_browser.lookup.resolvers import PageFinder, first_result
from uncaged_browser.problems import BrowserProblem
from uncaged_bundles.errors import UsageError
from uncaged_engine.services.settings import BrowserSettings, Resolver

RESULTS = "https://find.example.org/?q="
ALL: tuple[Resolver, ...] = ("search", "keyword", "encyclopedia", "history")


class ScriptedTabs:
    """Tabs of pages by address: HTML, or the status of an error. performed: do and address."""

    def __init__(self, pages: Mapping[str, str | int]) -> None:
        self.pages = pages
        self.performed: list[tuple[str, str]] = []
        self.open: dict[str, str] = {}

    def perform(self, body: Mapping[str, object], timeout_s: float) -> Any:
        assert timeout_s == 7
        do, tab = str(body["do"]), str(body.get("tab", len(self.performed)))
        url = str(body.get("url", self.open.get(tab)))
        self.performed.append((do, url))
        if do == "close":
            del self.open[tab]
            return {"tab": tab, "open": len(self.open)}
        if url not in self.pages:
            raise BrowserProblem("blocked", f"Navigation to {url} blocked")
        page = self.pages[url]
        self.open[tab] = url
        if do == "html":
            return {"url": url, "text": page}
        status = {"status": page} if isinstance(page, int) else {}
        return {"tab": tab, "url": url, "title": "", "current": True, **status}


def finder(tabs: ScriptedTabs, index: KnowledgeIndex | None, *resolvers: Resolver) -> PageFinder:
    settings = BrowserSettings(
        resolvers=resolvers,
        search="house",
        providers={"house": RESULTS + "{text}"},
        encyclopedia="https://words.example.org/{text}",
        keywords={"timetable": "https://trains.example.org/"},
    )
    return PageFinder(settings, index, tabs.perform, 7)


@pytest.fixture
def index(tmp_path: Path) -> KnowledgeIndex:
    found = KnowledgeIndex(tmp_path / "knowledge.sqlite3")
    found.add(
        KnownPage(url="https://old.example.org/", title="Timetable of old", time_ms=1), "visit"
    )
    return found


def test_resolvers_are_tried_in_order_until_one_finds(index: KnowledgeIndex) -> None:
    """Each resolver that is on is tried after those before it found nothing; those that are off are
    not asked, and no tab of a failed one stays open.
    """
    pages: dict[str, str | int] = {
        RESULTS + "timetable": "<h2><a href='https://result.example.org/'>Timetable</a></h2>",
        "https://result.example.org/": "x",
        "https://trains.example.org/": "x",
        "https://words.example.org/timetable": "x",
        "https://old.example.org/": "x",
    }
    for gone, expected in (
        (None, ("search", "https://result.example.org/")),
        ("https://result.example.org/", ("keyword", "https://trains.example.org/")),
        ("https://trains.example.org/", ("encyclopedia", "https://words.example.org/timetable")),
        ("https://words.example.org/timetable", ("history", "https://old.example.org/")),
    ):
        if gone is not None:
            pages[gone] = 404
        tabs = ScriptedTabs(pages)
        found = finder(tabs, index, *ALL).open("timetable")
        assert (found["resolver"], found["url"]) == expected
        assert list(tabs.open.values()) == [found["url"]]
    tabs = ScriptedTabs(pages)
    assert finder(tabs, index, "history").open("timetable")["resolver"] == "history"
    assert tabs.performed == [("open", "https://old.example.org/")]


def test_nothing_found_says_why_and_what_to_do(index: KnowledgeIndex) -> None:
    """The error has the reason of each resolver and the next step."""
    tabs = ScriptedTabs(
        {RESULTS + "volcano": "<p>no results</p>", "https://words.example.org/volcano": 404}
    )
    with pytest.raises(BrowserProblem) as caught:
        finder(tabs, index, "search", "keyword", "encyclopedia").open("volcano")
    text = str(caught.value)
    for part in (
        "search: house has no result",
        "keyword: no keyword",
        "status 404",
        "history: switched off",
        "write an address",
    ):
        assert part in text
    assert caught.value.kind == "not-found" and tabs.open == {}


def test_a_caller_without_the_history_is_told_so() -> None:
    """The resolver is on, and the reason is another one."""
    tabs = ScriptedTabs({})
    for resolvers, reason in (
        (("keyword", "history"), "history: a flow in a context of its own has none"),
        (("keyword",), "history: switched off"),
    ):
        with pytest.raises(BrowserProblem, match=reason):
            finder(tabs, None, *resolvers).open("volcano")
    assert tabs.performed == []


def test_a_provider_outside_the_scope_is_passed_over(index: KnowledgeIndex) -> None:
    """A search that the policy blocks leaves the next resolver."""
    tabs = ScriptedTabs({"https://trains.example.org/": "x"})
    found = finder(tabs, index, "search", "keyword").open("timetable")
    assert found["resolver"] == "keyword"


def test_the_first_result_is_a_link_of_a_heading_that_shares_a_word() -> None:
    """Logos, other links, scripts and malformed addresses are no results; a relative address is
    resolved, and a heading may be inside of its link.
    """
    html = """<h1><a href=/>House search</a></h1><a href=/otters>Otters everywhere</a>
      <h2><a href="javascript:otters()">Otters</a></h2><h2><a href=http://[otters>Otters</a></h2>
      <h2><a href=//otters.test:x/>Otters</a></h2><h2><a href=//volcano.example.org/>Lava</a></h2>
      <a href="/go?to=1"><div><h3>About <b>otters</b></h3></div></a>
      <h2><a href=https://otters.example.org/>Second</a></h2>"""
    assert first_result(html, RESULTS, "the otters") == "https://find.example.org/go?to=1"
    assert (
        first_result(html, "https://otters.example.org/?q=", "find otters")
        == "https://otters.example.org/go?to=1"
    )
    assert first_result(html, RESULTS, "the") is None
    assert first_result("<h2><a>Otters", RESULTS, "otters") is None


def test_words_take_one_place_in_an_address() -> None:
    """Words cannot add parameters, paths or fragments to the address of a template."""
    assert (
        filled_template(RESULTS + "{text}", "a&b=c/#d  é") == RESULTS + "a%26b%3Dc%2F%23d%20%C3%A9"
    )
    for wrong in ("", " ", "x" * 501):
        with pytest.raises(UsageError):
            filled_template(RESULTS, wrong)
