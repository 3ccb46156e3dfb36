"""Bookmarks and history of other browsers: the files of Chrome and Chromium, and exported
bookmarks as HTML.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError, StorageError, UsageError, os_problem

from .index import PageSource
from .pages import MAX_TITLE_CHARACTERS, KnownPage, bare_address

__all__ = ["imported_pages"]

PROFILE_FILES = ("Bookmarks", "History")
MAX_FILE_BYTES = 1 << 30
MAX_PAGES = 200_000
MAX_DEPTH = 200
FORMATS = (
    "the file Bookmarks or History of a profile of Chrome or Chromium, the profile's directory, or bookmarks that a"
    " browser exported as HTML"
)
CHROME_EPOCH_MS = 11_644_473_600_000
"""Milliseconds from 1601, from which Chrome counts, to 1970."""
NEWEST = "select url, title, last_visit_time from urls where hidden = 0 order by last_visit_time desc limit ?"


def imported_pages(path: Path) -> list[tuple[KnownPage, PageSource]]:
    """Return the pages of a file, or of a profile's directory; each address once. The files are
    only read, also while their browser runs.

    Raises:
        NotFoundError: there is no such file. UsageError: it has another format. DamagedError: it is
            torn.
    """
    try:
        files = [path / name for name in PROFILE_FILES] if path.is_dir() else [path]
        files = [file for file in files if file.exists()]
        if not files:
            raise NotFoundError(f"{path}: nothing to import; name {FORMATS}")
        found: dict[str, tuple[KnownPage, PageSource]] = {}
        for file in files:
            for page, source in _pages_of(file):
                found.setdefault(page.url, (page, source))
                if len(found) == MAX_PAGES:
                    break
    except OSError as exc:
        raise StorageError(f"cannot read {os_problem(exc, path)}") from exc
    return list(found.values())


def _pages_of(path: Path) -> Iterator[tuple[KnownPage, PageSource]]:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{path}: more than {MAX_FILE_BYTES:,} bytes are not imported")
    with path.open("rb") as file:
        head = file.read(2_000)
    if head.startswith(b"SQLite format 3\0"):
        yield from _history(path)
    elif head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        yield from _chrome_bookmarks(path)
    elif b"netscape-bookmark-file" in head.lower() or b"<dt><a " in head.lower():
        yield from _exported_bookmarks(path)
    else:
        raise UsageError(f"{path}: the format is not known; name {FORMATS}")


def _history(path: Path) -> Iterator[tuple[KnownPage, PageSource]]:
    with tempfile.TemporaryDirectory(prefix="uncaged-import-") as directory:
        copy = Path(directory) / "History"
        shutil.copyfile(path, copy)  # its browser holds a lock on it
        try:
            with closing(
                sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)
            ) as connection:
                rows = connection.execute(NEWEST, (MAX_PAGES,)).fetchall()
        except sqlite3.DatabaseError as exc:
            raise DamagedError(f"{path}: no history of Chrome, or a torn one: {exc}") from exc
    for url, title, visited in rows:
        yield from _page(url, title, _from_chrome(visited), "history")


def _chrome_bookmarks(path: Path) -> Iterator[tuple[KnownPage, PageSource]]:
    try:
        document = json.loads(path.read_text("utf-8-sig"))
        roots = document["roots"]
        nodes: list[tuple[Any, int]] = [(one, 0) for one in roots.values()]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as exc:
        raise DamagedError(f"{path}: no bookmarks of Chrome, or torn ones: {exc}") from exc
    while nodes:
        node, depth = nodes.pop(0)
        if not isinstance(node, dict) or depth > MAX_DEPTH:
            continue
        if node.get("type") == "url":
            made = _from_chrome(node.get("date_added"))
            yield from _page(node.get("url"), node.get("name"), made, "bookmark")
        children = node.get("children")
        if isinstance(children, list):
            nodes.extend((one, depth + 1) for one in children)


def _exported_bookmarks(path: Path) -> Iterator[tuple[KnownPage, PageSource]]:
    reader = BookmarkReader()
    reader.feed(path.read_text("utf-8", "replace"))
    reader.close()
    for url, title, made_s in reader.found:
        made_ms = int(made_s) * 1000 if made_s.isdecimal() and len(made_s) < 12 else 0
        yield from _page(url, title, made_ms, "bookmark")


class BookmarkReader(HTMLParser):
    """Reads the links of exported bookmarks. found: address, title, seconds since 1970 as text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self._link: tuple[str, str] | None = None
        self._title: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "a":
            values = {name: value or "" for name, value in attrs}
            self._link, self._title = (values.get("href", ""), values.get("add_date", "")), []

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link is not None:
            self.found.append((self._link[0], "".join(self._title), self._link[1]))
            self._link = None

    def handle_data(self, data: str) -> None:
        if self._link is not None:
            self._title.append(data)


def _page(
    url: object, title: object, time_ms: int, source: PageSource
) -> Iterator[tuple[KnownPage, PageSource]]:
    """Yield the page of an address of the web."""
    bare = bare_address(url) if isinstance(url, str) else ""
    if bare:
        shown = " ".join(title.split()) if isinstance(title, str) else ""
        page = KnownPage(url=bare, title=shown[:MAX_TITLE_CHARACTERS], time_ms=time_ms)
        yield page, source


def _from_chrome(value: object) -> int:
    """Return a time of Chrome, in microseconds since 1601, in milliseconds since 1970; 0 for
    none.
    """
    try:
        return max(0, int(value) // 1000 - CHROME_EPOCH_MS)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return 0
