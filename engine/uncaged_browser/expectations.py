"""Expectations of a step: what its page must show afterwards. A page that differs is drift, which
is an answer and no error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

__all__ = ["PageExpectation", "read_expectation"]

KEYS = ("url", "title", "heading", "view")
MAX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PageExpectation:
    r"""Patterns, with ``*`` for any characters, and ``\*`` for an asterisk. url: of the whole
    address, or of the path if it starts with ``/``; a query counts only if the pattern has one.
    heading: of one visible heading. view: a part of the page view, as in Playwright's aria
    snapshots.
    """

    url: str | None = None
    title: str | None = None
    heading: str | None = None
    view: str | None = None

    def document(self) -> dict[str, object]:
        """Return the expectation as JSON data."""
        values = {"url": self.url, "title": self.title, "heading": self.heading, "view": self.view}
        return {key: value for key, value in values.items() if value is not None}

    def differences(
        self, url: str, title: str, headings: tuple[str, ...]
    ) -> list[dict[str, object]]:
        """Return each difference of a page with both sides; the view is compared elsewhere."""
        found: list[dict[str, object]] = []
        if self.url is not None and not fits(self.url, comparable(url, self.url)):
            found.append({"what": "url", "expected": self.url, "found": url})
        if self.title is not None and not fits(self.title, title):
            found.append({"what": "title", "expected": self.title, "found": title})
        if self.heading is not None and not any(fits(self.heading, one) for one in headings):
            found.append({"what": "heading", "expected": self.heading, "found": list(headings)})
        return found


def read_expectation(value: object, path: shapes.Path) -> PageExpectation:
    """Read an expectation: a mapping with at least one of the keys.

    Raises:
        ShapeError: it is malformed.
    """
    fields = shapes.mapping(value, path)
    shapes.known_keys(fields, KEYS, path)
    if not fields:
        raise shapes.ShapeError(path, f"needs at least one of {', '.join(KEYS)}")
    texts: dict[str, str] = {}
    for key, text in fields.items():
        texts[key] = shapes.filled(text, (*path, key))
        if len(texts[key]) > MAX_CHARACTERS:
            raise shapes.ShapeError((*path, key), f"is longer than {MAX_CHARACTERS:,} characters")
    return PageExpectation(**texts)


def fits(pattern: str, text: str) -> bool:
    """Whether a text is one of a pattern; runs of white space are equal. A page chooses the text,
    so the time is linear in it.
    """
    parts = re.split(r" ?(?<!\\)\* ?", " ".join(pattern.split()))
    first, *rest = [part.replace("\\*", "*") for part in parts]
    shown = " ".join(text.split())
    if not rest:
        return shown == first
    *inner, last = rest
    if not shown.startswith(first):
        return False
    position = len(first)
    for part in inner:
        found = shown.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(shown) - position >= len(last) and shown.endswith(last)


def comparable(url: str, pattern: str) -> str:
    """Return the part of an address that a pattern is about."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    text = parts.path or "/"
    if not pattern.startswith("/"):
        text = f"{parts.scheme}://{parts.netloc}{text}"
    if "?" in pattern and parts.query:
        text += f"?{parts.query}"
    if "#" in pattern and parts.fragment:
        text += f"#{parts.fragment}"
    return text


def described(differences: object) -> str:
    """Return differences as one line for people."""
    listed = differences if isinstance(differences, list) else []
    return "; ".join(
        f"{one.get('what')}: expected {one.get('expected')!r}, found {one.get('found')!r}"
        for one in listed
        if isinstance(one, Mapping)
    )
