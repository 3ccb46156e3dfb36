"""Resolution of a name to a page: by a search, by keywords, by an encyclopedia, by the history, in
this order. Each resolver is switched on and off in config.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any, assert_never, get_args
from urllib.parse import urljoin

from uncaged_bundles.errors import UncagedError
from uncaged_engine.services.settings import BrowserSettings, Resolver

from ..addresses import parts_of
from ..knowledge.index import KnowledgeIndex
from ..knowledge.passages import telling_words
from ..problems import BrowserProblem
from ..session.messages import MissingContext
from .providers import filled_template, search_address

__all__ = ["RESOLVERS", "PageFinder"]

RESOLVERS: tuple[Resolver, ...] = get_args(Resolver)
"""All resolvers, in the order in which they are tried."""
Perform = Callable[[Mapping[str, object], float], Any]
"""Performs the operation of a mapping within so many seconds."""
HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
MAX_RESULTS = 50
ADVICE = (
    "write an address such as example.com, search for it (uncaged-workflow browser search), or switch a resolver on"
    " (uncaged-workflow browser resolver)"
)


class PageFinder:
    """Opens pages by name, each in a new tab; a tab in which nothing was found is closed."""

    def __init__(
        self,
        settings: BrowserSettings,
        index: KnowledgeIndex | None,
        perform: Perform,
        timeout_s: float,
    ) -> None:
        """Args:
        index: with the pages that were visited; None if the caller may not know them.
        timeout_s: of each operation.
        """
        self._settings = settings
        self._index = index
        self._perform = perform
        self._timeout_s = timeout_s

    def open(self, name: str) -> dict[str, object]:
        """Open the page that a name means; return the tab, with the resolver that found it under
        ``resolver``.

        Raises:
            BrowserProblem: no resolver found it; the message has the reason of each.
        """
        reasons: list[str] = []
        for resolver in RESOLVERS:
            if resolver not in self._settings.resolvers:
                reasons.append(f"{resolver}: switched off")
                continue
            try:
                answer = self._by(resolver, name)
            except MissingContext:
                raise  # nothing was performed yet
            except (BrowserProblem, UncagedError) as exc:
                reasons.append(f"{resolver}: {exc}")
            else:
                return {**answer, "resolver": resolver}
        raise BrowserProblem(
            "not-found", f"no page was found for {name[:200]!r} ({'; '.join(reasons)}); {ADVICE}"
        )

    def _by(self, resolver: Resolver, name: str) -> dict[str, object]:
        settings = self._settings
        match resolver:
            case "search":
                return self._first_result(name)
            case "keyword":
                words = telling_words(name)
                known = {tuple(telling_words(one)): url for one, url in settings.keywords.items()}
                address = known.get(tuple(words))
                if address is None:
                    raise BrowserProblem("not-found", "no keyword of config.yaml is equal to it")
                return self._opened(address)
            case "encyclopedia":
                return self._opened(filled_template(settings.encyclopedia, name))
            case "history":
                if self._index is None:
                    raise BrowserProblem("refused", "a flow in a context of its own has none")
                address = self._index.address_named(name)
                if address is None:
                    raise BrowserProblem("not-found", "no page of the history has these words")
                return self._opened(address)
            case _:
                assert_never(resolver)

    def _opened(self, url: str) -> dict[str, object]:
        """Open an address in a new tab.

        Raises:
            BrowserProblem: it cannot be loaded, or the reply is an error.
        """
        tab: dict[str, object] = self._perform(
            {"do": "open", "url": url, "timeout_s": self._timeout_s}, self._timeout_s
        )
        if "status" in tab:
            self._close(tab)
            raise BrowserProblem("not-found", f"{url} answers with status {tab['status']}")
        return tab

    def _first_result(self, name: str) -> dict[str, object]:
        """Open the first result of a search that shares a word with the name."""
        settings = self._settings
        tab = self._opened(search_address(name, settings))
        at = {"tab": tab["tab"], "timeout_s": self._timeout_s}
        try:
            source = self._perform({"do": "html", "as": "clean", **at}, self._timeout_s)
            url = first_result(str(source["text"]), str(source["url"]), name)
            if url is None:
                raise BrowserProblem(
                    "not-found", f"{settings.search} has no result that shares a word with it"
                )
            found: dict[str, object] = self._perform(
                {"do": "navigate", "url": url, **at}, self._timeout_s
            )
            if "status" in found:
                raise BrowserProblem("not-found", f"{url} answers with status {found['status']}")
        except BrowserProblem:
            self._close(tab)
            raise
        return found

    def _close(self, tab: Mapping[str, object]) -> None:
        with suppress(BrowserProblem):
            self._perform({"do": "close", "tab": tab["tab"]}, self._timeout_s)


def first_result(html: str, url: str, name: str) -> str | None:
    """Return the address of the first result on a page of results: a link in a heading, or with a
    heading in it, that shares a word with the name.
    """
    reader = ResultReader()
    reader.feed(html)
    wanted = set(telling_words(name))
    page = parts_of(url)
    own = None if page is None else page.hostname
    for href, text in reader.found[:MAX_RESULTS]:
        address = _joined(url, href)
        parts = parts_of(address)
        if parts is None or parts.scheme not in ("http", "https"):
            continue
        host = "" if parts.hostname in (None, own) else str(parts.hostname)
        if wanted & {*telling_words(text), *telling_words(host)}:
            return address
    return None


def _joined(url: str, href: str) -> str:
    """Return the address of a link; empty if it is malformed."""
    try:
        return urljoin(url, href)
    except ValueError:
        return ""


class ResultReader(HTMLParser):
    """Reads the links of headings. found: address and text of each."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._headings = 0
        self._href: str | None = None
        self._counts = False
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in HEADINGS:
            self._headings += 1
            self._counts = True
        elif tag == "a":
            self._href = dict(attrs).get("href")
            self._counts, self._text = self._headings > 0, []

    def handle_endtag(self, tag: str) -> None:
        if tag in HEADINGS:
            self._headings = max(0, self._headings - 1)
        elif tag == "a" and self._href is not None:
            if self._counts:
                self.found.append((self._href, " ".join("".join(self._text).split())))
            self._href = None

    def handle_data(self, data: str) -> None:
        if self._href is not None:
            self._text.append(data)
