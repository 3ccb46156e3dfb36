"""Full-text index of pages in SQLite (FTS5): `knowledge.sqlite3` of a store.

Every change is one transaction, so that processes may write at once, and a killed one leaves the
index as it was. A file that is damaged, or that is no such index, is refused and never replaced.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from uncaged_bundles.errors import DamagedError, RefusedError, StorageError
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..scope import BrowserScope
from .pages import KnownPage
from .passages import passages_of, query_of, spaced, words_of

__all__ = ["FoundPassage", "IndexedPage", "KnowledgeIndex", "PageSource", "knowledge_path"]

PageSource = str
"""page: its text is indexed. visit, bookmark, history: only its address and title are."""
AGAIN_MS = 600_000
"""A page is not indexed again within this time."""
APPLICATION = 0x554E4B57
"""Marks the file as this index (``pragma application_id``)."""
LAYOUT = 1
WAIT_S = 30.0
HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
_TABLES = f"""
create table pages(
    id integer primary key, url text not null unique, host text not null, title text not null,
    headings text not null, source text not null, time_ms integer not null, visits integer not null
);
create table passages(id integer primary key, page integer not null references pages(id), text text not null);
create index passages_of_page on passages(page);
create virtual table words using fts5(title, address, headings, text, tokenize = 'porter unicode61');
pragma application_id = {APPLICATION};
pragma user_version = {LAYOUT};
"""
_RANKED = """
select pages.url, pages.title, passages.text, pages.time_ms, -bm25(words, 4.0, 1.0, 2.0, 3.0)
from words join passages on passages.id = words.rowid join pages on pages.id = passages.page
where words match ? order by bm25(words, 4.0, 1.0, 2.0, 3.0), passages.id limit ?
"""
_NAMED = """
select pages.url from words
join passages on passages.id = words.rowid join pages on pages.id = passages.page where words match ?
order by bm25(words, 4.0, 2.0, 0.0, 0.0), pages.visits desc, pages.time_ms desc, pages.id limit 1
"""


def knowledge_path(store: Store) -> Path:
    """Return the file of a store's index."""
    return store.root / "knowledge.sqlite3"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """A passage that shares words with a question. score: higher is nearer."""

    url: str
    title: str
    text: str
    time_ms: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPage:
    """A page of the index. passages: how many of its text; 0 if only address and title are
    indexed.
    """

    url: str
    host: str
    title: str
    source: PageSource
    time_ms: int
    passages: int

    def document(self) -> dict[str, object]:
        """Return the page as JSON data."""
        return {
            "url": self.url,
            "host": self.host,
            "title": self.title,
            "source": self.source,
            "timeMs": self.time_ms,
            "passages": self.passages,
        }


class KnowledgeIndex:
    """Index in one file, which is opened for each call and made by the first one that writes. The
    path None is an index in memory, for one question.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._memory = _memory_index() if path is None else None

    def add(self, page: KnownPage, source: PageSource = "page", *, again: bool = False) -> bool:
        """Index a page, whose former text is replaced; return whether it was done.

        Args:
            again: also if it was indexed within the last ten minutes.
        """
        return self.add_all([(page, source)], again=again) == 1

    def add_all(self, pages: Sequence[tuple[KnownPage, PageSource]], *, again: bool = False) -> int:
        """Index pages in one transaction; return how many were new or changed."""
        with self._changing() as connection:
            return sum(_put(connection, page, source, again=again) for page, source in pages)

    def find(self, question: str, limit: int) -> list[FoundPassage]:
        """Return the passages that are nearest to a question, best first."""
        query = query_of(question)
        if not query:
            return []
        with self._reading() as connection:
            rows = connection.execute(_RANKED, (query, limit)).fetchall() if connection else []
        return [
            FoundPassage(url=url, title=title, text=text or title, time_ms=time_ms, score=score)
            for url, title, text, time_ms, score in rows
        ]

    def address_named(self, name: str) -> str | None:
        """Return the address of the page whose title or address has all words of a name."""
        words = words_of(name)
        if not words:
            return None
        query = "{title address} : (" + " AND ".join(f'"{word}"' for word in words) + ")"
        with self._reading() as connection:
            row = connection.execute(_NAMED, (query,)).fetchone() if connection else None
        return None if row is None else str(row[0])

    def pages(self) -> list[IndexedPage]:
        """Return all pages, the newest first."""
        with self._reading() as connection:
            rows = (
                connection.execute(
                    "select url, host, title, source, time_ms, (select count(*) from passages where page = pages.id"
                    " and text <> '') from pages order by time_ms desc, url"
                ).fetchall()
                if connection
                else []
            )
        return [
            IndexedPage(
                url=url, host=host, title=title, source=source, time_ms=time_ms, passages=passages
            )
            for url, host, title, source, time_ms, passages in rows
        ]

    def forget(self, host: str | None) -> int:
        """Remove the pages of a host and of names below it, or all; return how many. Nothing of
        them is left in the file.
        """
        scope = None if host is None else BrowserScope.of([host])
        with self._changing() as connection:
            rows = connection.execute("select id, url from pages").fetchall()
            gone = [(number,) for number, url in rows if scope is None or scope.allows(url)]
            for page in gone:
                _remove_text(connection, page[0])
            connection.executemany("delete from pages where id = ?", gone)
            connection.execute("insert into words(words) values ('optimize')")
        if gone:
            with self._handling(), self._opened() as connection:
                connection.execute("vacuum")
        return len(gone)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._handling(), self._opened() as connection:
            connection.execute("begin immediate")  # a second process waits here
            try:
                _prepare(connection, self._path)
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open the index; None without a file."""
        if self._path is not None and not self._path.exists():
            yield None
            return
        with self._handling(), self._opened() as connection:
            yield connection if _is_index(connection, self._path) else None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None or self._path is None:
            yield self._memory or _memory_index()
            return
        _check_size(self._path)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._path, timeout=WAIT_S, isolation_level=None)
        try:
            connection.execute("pragma secure_delete = on")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _handling(self) -> Iterator[None]:
        """Raise errors of SQLite as errors of the command."""
        try:
            yield
        except sqlite3.OperationalError as exc:
            code = exc.sqlite_errorcode & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RefusedError(
                    f"{self._path}: another process has changed the index for {WAIT_S:g} s; try again"
                ) from exc
            if code == sqlite3.SQLITE_ERROR:
                raise _damaged(self._path, str(exc)) from exc
            raise StorageError(f"{self._path}: {exc}") from exc
        except sqlite3.DatabaseError as exc:
            raise _damaged(self._path, str(exc)) from exc
        except OSError as exc:
            raise StorageError(f"{self._path}: {exc.strerror or exc}") from exc


def _memory_index() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _damaged(path: Path | None, why: str) -> DamagedError:
    return DamagedError(
        f"{path}: it is no index of pages, or it is damaged ({why}); it is left as it is."
        " Move it away, and index the pages again"
    )


def _check_size(path: Path) -> None:
    """Refuse a file that is no database, or is shorter than its header says.

    Raises:
        DamagedError: it is.
    """
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return
    if not header:
        return
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        raise _damaged(path, "it does not begin as a file of SQLite")
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if size < pages * (65_536 if page_bytes == 1 else page_bytes):
        raise _damaged(path, f"{size:,} bytes of {pages * page_bytes:,}")


def _is_index(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Whether the file has the index; False for an empty one.

    Raises:
        DamagedError: it has something else.
    """
    application = connection.execute("pragma application_id").fetchone()[0]
    layout = connection.execute("pragma user_version").fetchone()[0]
    if application == 0 and layout == 0:
        tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
        if tables == 0:
            return False
    if application != APPLICATION:
        raise _damaged(path, "it has another application's data")
    if layout != LAYOUT:
        raise _damaged(path, f"its layout is {layout}, not {LAYOUT}")
    return True


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    if not _is_index(connection, path):
        for statement in _TABLES.split(";"):
            connection.execute(statement)


def _put(
    connection: sqlite3.Connection, page: KnownPage, source: PageSource, *, again: bool
) -> bool:
    """Insert or update a page. Text is replaced by text alone; a visit of a page whose text is
    indexed is only counted.
    """
    row = connection.execute(
        "select id, source, time_ms from pages where url = ?", (page.url,)
    ).fetchone()
    if row is None:
        added = connection.execute(
            "insert into pages(url, host, title, headings, source, time_ms, visits) values (?, ?, ?, ?, ?, ?, 1)",
            (page.url, page.host, page.title, "\n".join(page.headings), source, page.time_ms),
        )
        _put_text(connection, int(added.lastrowid or 0), page)
        return True
    number, former, time_ms = row
    if source == "visit":
        connection.execute("update pages set visits = visits + 1 where id = ?", (number,))
    if former == "page" and (
        source != "page" or (not again and 0 <= page.time_ms - time_ms < AGAIN_MS)
    ):
        return False
    if former != "page" and source != "page" and page.time_ms <= time_ms:
        return False
    connection.execute(
        "update pages set title = ?, headings = ?, source = ?, time_ms = ? where id = ?",
        (page.title, "\n".join(page.headings), source, page.time_ms, number),
    )
    _remove_text(connection, number)
    _put_text(connection, number, page)
    return True


def _put_text(connection: sqlite3.Connection, number: int, page: KnownPage) -> None:
    headings = spaced(" ".join(page.headings))
    for text in passages_of(page.text) or [""]:
        added = connection.execute("insert into passages(page, text) values (?, ?)", (number, text))
        connection.execute(
            "insert into words(rowid, title, address, headings, text) values (?, ?, ?, ?, ?)",
            (added.lastrowid, spaced(page.title), page.url, headings, spaced(text)),
        )


def _remove_text(connection: sqlite3.Connection, number: int) -> None:
    connection.execute(
        "delete from words where rowid in (select id from passages where page = ?)", (number,)
    )
    connection.execute("delete from passages where page = ?", (number,))
