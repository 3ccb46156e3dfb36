"""Pages as they are indexed: address, title, headings and text, and whether they are private."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlunsplit

from uncaged_bundles.records import dataclass

from ..addresses import is_private, parts_of
from ..problems import BrowserProblem

__all__ = [
    "KnownPage",
    "bare_address",
    "host_of",
    "read_page",
    "reading_page",
]

Perform = Callable[[Mapping[str, object]], Any]
"""Performs the operation of a mapping."""
PageReading = Generator[Mapping[str, object], Any, "KnownPage"]
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
MAX_HEADINGS = 200
MAX_HEADING_CHARACTERS = 300
MAX_TITLE_CHARACTERS = 500
MAX_TEXT_CHARACTERS = 1_000_000
MAX_ADDRESS_CHARACTERS = 2_000
SECRET_FIELDS = frozenset(
    {"current-password", "new-password", "one-time-code", "cc-number", "cc-csc", "cc-exp"}
)
"""Values of ``autocomplete`` of fields whose pages are private, as those with passwords are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page. time_ms: when it was read or visited, or when its bookmark was made. has_secrets: it
    has a field for a password or a card. is_cut: it is so long that only its beginning was read.
    """

    url: str
    title: str
    time_ms: int
    headings: tuple[str, ...] = ()
    text: str = ""
    has_secrets: bool = False
    is_cut: bool = False

    @property
    def may_have_secrets(self) -> bool:
        """Whether it has a field for a password or a card, or may have one in what was not read."""
        return self.has_secrets or self.is_cut

    @property
    def host(self) -> str:
        """Return the host of its address, with the port if it has one."""
        return host_of(self.url)

    @property
    def private(self) -> str:
        """Return why the page is private; empty if it is not."""
        if self.has_secrets:
            return "it has a field for a password or a card"
        if self.is_cut:
            return "it is too long to be searched for a field for a password or a card"
        private = is_private(self.host)
        return f"{self.host} is a host of this machine or its network" if private else ""


def host_of(url: str) -> str:
    """Return the host of an address, with the port if it has one; empty without a host."""
    parts = parts_of(url)
    if parts is None or not parts.hostname:
        return ""
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{parts.port}" if parts.port else name


def bare_address(url: str) -> str:
    """Return an address of the web without user, password and fragment; empty if it is none."""
    parts = parts_of(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    place = parts.netloc.rpartition("@")[2].casefold()
    bare = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
    return bare if len(bare) <= MAX_ADDRESS_CHARACTERS else ""


def reading_page(now_ms: int, tab: str | None = None) -> PageReading:
    """Read the page of a tab: a generator that yields operations and gets their answers.

    Args:
        tab: None is the current one.
    Raises:
        BrowserProblem: it is no page of the web, or another page was loaded meanwhile.
    """
    at = {} if tab is None else {"tab": tab}
    address = yield {"do": "address", **at}
    source = yield {"do": "html", "as": "clean", **at}
    text = yield {"do": "text", **at}
    url = bare_address(str(address["url"]))
    if not url:
        raise BrowserProblem("unsupported", f"{address['url']!r} is no page of the web")
    if {str(address["url"]), str(source["url"])} != {str(text["url"])}:
        raise BrowserProblem("navigation", "another page was loaded while this one was read")
    found = PageReader()
    found.feed(str(source["text"]))
    return KnownPage(
        url=url,
        title=" ".join(str(address["title"]).split())[:MAX_TITLE_CHARACTERS],
        time_ms=now_ms,
        headings=tuple(found.headings),
        text=str(text["text"])[:MAX_TEXT_CHARACTERS],
        has_secrets=found.has_secrets,
        is_cut=bool(source.get("truncated")),
    )


def read_page(perform: Perform, now_ms: int, tab: str | None = None) -> KnownPage:
    """Read the page of a tab; see `reading_page`."""
    reading = reading_page(now_ms, tab)
    answer: Any = None
    while True:
        try:
            answer = perform(reading.send(answer))
        except StopIteration as stop:
            page: KnownPage = stop.value
            return page


class PageReader(HTMLParser):
    """Reads headings and kinds of fields from a page's HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.has_secrets = False
        self._heading: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HEADINGS:
            self._heading = []
        elif tag == "input":
            values = {name: (value or "").strip().casefold() for name, value in attrs}
            purpose = values.get("autocomplete", "").split()[-1:]
            if values.get("type") == "password" or not SECRET_FIELDS.isdisjoint(purpose):
                self.has_secrets = True

    def handle_endtag(self, tag: str) -> None:
        if tag in HEADINGS and self._heading is not None:
            text = " ".join("".join(self._heading).split())[:MAX_HEADING_CHARACTERS]
            if text and len(self.headings) < MAX_HEADINGS:
                self.headings.append(text)
            self._heading = None

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading.append(data)
