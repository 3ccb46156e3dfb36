"""Bookmarks and history of other browsers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from uncaged_browser.knowledge.imports import imported_pages
from uncaged_bundles.errors import DamagedError, NotFoundError, UsageError

TIME = 13_350_000_000_000_000  # microseconds since 1601
TIME_MS = 1_705_526_400_000
NETSCAPE = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p>
  <DT><H3 ADD_DATE="1">Zoo</H3><DL><p>
    <DT><A HREF="https://zoo.example.org/otters" ADD_DATE="1705526400" ICON="data:x">Otters &amp;
      friends</A>
    <DT><A HREF="javascript:alert(1)">Script</A>
    <DT><A HREF="https://zoo.example.org/seals" ADD_DATE="soon">Seals</A>
  </DL><p>
</DL>"""


def write_history(path: Path) -> None:
    with closing(sqlite3.connect(path)) as history:
        history.execute("create table urls(url, title, last_visit_time integer, hidden integer)")
        rows = [
            ("https://zoo.example.org/old", "Old", TIME - 5_000_000, 0),
            ("https://zoo.example.org/new#part", "New", TIME, 0),
            ("https://zoo.example.org/frame", "Frame", TIME, 1),
            ("chrome://settings/", "Settings", TIME, 0),
        ]
        history.executemany("insert into urls values (?, ?, ?, ?)", rows)
        history.commit()


def write_bookmarks(path: Path) -> None:
    otters = {
        "type": "url",
        "name": "Otters",
        "url": "https://zoo.example.org/otters",
        "date_added": str(TIME),
    }
    folder = {"type": "folder", "name": "Zoo", "children": [otters, {"type": "url", "url": 7}]}
    path.write_text(json.dumps({"roots": {"bookmark_bar": folder, "other": "x"}, "version": 1}))


def test_the_history_of_chrome_is_read_while_it_is_locked(tmp_path: Path) -> None:
    """Visited pages come newest first, without those of frames and the browser's own; the file and
    its lock are untouched.
    """
    path = tmp_path / "History"
    write_history(path)
    before = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as chrome:
        chrome.execute("begin exclusive")
        found = imported_pages(path)
    assert [(page.url, page.title, page.time_ms, source) for page, source in found] == [
        ("https://zoo.example.org/new", "New", TIME_MS, "history"),
        ("https://zoo.example.org/old", "Old", TIME_MS - 5_000, "history"),
    ]
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["History"]


def test_a_profile_has_bookmarks_and_history(tmp_path: Path) -> None:
    """A profile's directory gives both files, each address once."""
    write_history(tmp_path / "History")
    write_bookmarks(tmp_path / "Bookmarks")
    found = imported_pages(tmp_path)
    assert [(page.title, page.time_ms, source) for page, source in found] == [
        ("Otters", TIME_MS, "bookmark"),
        ("New", TIME_MS, "history"),
        ("Old", TIME_MS - 5_000, "history"),
    ]


def test_exported_bookmarks_are_read(tmp_path: Path) -> None:
    """Links of a bookmark file have titles and times; scripts are left out."""
    path = tmp_path / "bookmarks.html"
    path.write_text(NETSCAPE)
    found = imported_pages(path)
    assert [(page.url, page.title, page.time_ms) for page, _ in found] == [
        ("https://zoo.example.org/otters", "Otters & friends", TIME_MS),
        ("https://zoo.example.org/seals", "Seals", 0),
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", DamagedError),
        (b'{"roots": []}', DamagedError),
        (b'{"a": 1}', DamagedError),
        (b"[" * 3, UsageError),
        (b"plain text", UsageError),
        (b"", UsageError),
        (b"SQLite format 3\0torn", DamagedError),
    ],
)
def test_a_file_that_is_none_is_refused(
    tmp_path: Path, content: bytes, problem: type[Exception]
) -> None:
    """A torn file and one of another format are different kinds of errors."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(problem):
        imported_pages(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A missing file, and a directory without either file, say what can be imported."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(NotFoundError, match="profile of Chrome"):
            imported_pages(path)
