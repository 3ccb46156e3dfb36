"""HTML page converted to Markdown, text, or the parts that a selector matches, within a time
limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any, cast
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import ATX, MarkdownConverter
from soupsieve import SelectorSyntaxError
from uncaged_engine.services.network import WebProblem

WITHOUT_TEXT = ("script", "style", "template", "svg", "iframe", "object")
BLOCKS = (
    *(
        "address",
        "article",
        "aside",
        "blockquote",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
    ),
    *(
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    ),
)
MOST_TAGS = 200_000
TITLE_WITHIN = 65_536
Check = Callable[[], object]


class Page:
    """Parsed page. check: called repeatedly during conversions; raises to stop them."""

    def __init__(self, html: str, url: str, check: Check) -> None:
        if html.count("<") > MOST_TAGS:
            raise WebProblem(
                "too-large", f"the page has more than {MOST_TAGS} tags; ask for it as html"
            )
        self._check = check
        self._url = url
        with _nesting_checked():
            self._soup = _parse(html, check)

    @property
    def title(self) -> str:
        found = self._soup.find("title")
        return " ".join(found.get_text().split()) if isinstance(found, Tag) else ""

    def markdown(self) -> str:
        self._reduce()
        body = self._soup.body or self._soup
        with _nesting_checked():
            text = _Converter(
                self._check, heading_style=ATX, bullets="-", escape_misc=False
            ).convert_soup(body)
        return re.sub(
            r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.splitlines())
        ).strip()

    def text(self) -> str:
        self._reduce()
        for line in self._soup.find_all("br"):
            line.replace_with("\n")
        for cell in self._soup.find_all(("td", "th")):
            cell.append("\t")
        for block in self._soup.find_all(BLOCKS):
            block.insert_before("\n")
            block.append("\n")
        body = self._soup.body or self._soup
        lines = (" ".join(line.split()) for line in body.get_text().splitlines())
        return "\n".join(line for line in lines if line)

    def selected(self, selector: str) -> str:
        """Return the inner HTML of the parts that a CSS selector matches, one below the other."""
        self._link()
        try:
            found = self._soup.select(selector)
        except SelectorSyntaxError as exc:
            raise WebProblem(
                "selector", f"{selector!r} is no CSS selector: {str(exc).splitlines()[0]}"
            ) from None
        if not found:
            raise WebProblem("selector", f"nothing on the page matches {selector!r}")
        return "\n".join(part.decode_contents().strip() for part in found)

    def _reduce(self) -> None:
        """Remove parts without readable content."""
        for part in self._soup.find_all(WITHOUT_TEXT):
            part.decompose()
        for image in self._soup.find_all("img", src=re.compile("^data:")):
            image.decompose()
        self._link()

    def _link(self) -> None:
        """Make links absolute."""
        for part in self._soup.find_all(True, {"href": True}) + self._soup.find_all(
            True, {"src": True}
        ):
            self._check()
            for key in ("href", "src"):
                if key in part.attrs:
                    part[key] = _absolute(self._url, str(part[key]))


def title_of(html: str) -> str:
    """Return the title of a page without parsing it."""
    found = re.search(r"<title[^<>]*>([^<]*)", html[:TITLE_WITHIN], re.IGNORECASE)
    return " ".join(unescape(found[1]).split()) if found else ""


def declared_charset(body: bytes) -> str:
    """Return the charset that a page declares in its head."""
    return EncodingDetector.find_declared_encoding(body[:4096], is_html=True) or ""


def _parse(html: str, check: Check) -> BeautifulSoup:
    class Watched(BeautifulSoup):
        """Parser that calls *check* at each tag and each text."""

        def handle_starttag(self, *arguments: Any, **more: Any) -> Any:
            check()
            return super().handle_starttag(*arguments, **more)

        def handle_data(self, data: str) -> None:
            check()
            super().handle_data(data)

    return Watched(html, "html.parser")


class _Converter(MarkdownConverter):
    def __init__(self, check: Check, **options: Any) -> None:
        super().__init__(**options)
        self._check = check

    def process_tag(self, node: Any, parent_tags: Any = None) -> str:
        self._check()
        return cast("str", super().process_tag(node, parent_tags=parent_tags))  # type: ignore[misc]  # missing in its stub


@contextmanager
def _nesting_checked() -> Iterator[None]:
    """Raise WebProblem for a page that is nested deeper than Python can recurse."""
    try:
        yield
    except RecursionError:
        raise WebProblem("body", "the page is nested too deeply; ask for it as html") from None


def _absolute(base: str, link: str) -> str:
    try:
        return urljoin(base, link)
    except ValueError:
        return link
