"""SQLite index of a store's threads (``index.db``): names, summaries of ended threads, and the
journals that may be locked.

Journals are the only truth; the file may be deleted at any time.

Rule 1: a summary is kept with the stamp of the journal's file (inode, size, times of change in ns)
  from before it was read, and counts only while the file has that stamp. A resume, a cut tail, a
  restored backup or an edit change it, whatever a clock says.
Rule 2: only what the journal's bytes decide alone is kept: the summary of a thread that has ended,
  and has no effect about which a person has to decide. Of any other thread the index knows the
  name.
Rule 3: a worker writes to the order log after it took a journal's lock, and before it appends. So
  whatever is locked is in `taken_up`, or in the log after the place that the index knows. A row
  goes only if its lock was seen free after the log had been read that far, and if it was not taken
  up again since.
Rule 4: a file that is damaged, foreign or of another version is thrown away; one that cannot be
  used just now is done without. Connections share a lock on the directory ``run``, and the process
  that throws the file away holds it alone: SQLite finds its side files by name, and must not find
  those of another file.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import quote

from uncaged_bundles.ids import BundleHash, ThreadId, is_bundle_hash, is_thread_id
from uncaged_bundles.storage.order import OrderPlace, OrderTail
from uncaged_bundles.storage.store import Store

from ..journal.usage import NOTHING

if TYPE_CHECKING:  # completion does without
    from .observe import ThreadSummary
    from .states import State

NAME = "index.db"
SIDE_FILES = ("-journal", "-wal", "-shm")
APPLICATION = 0x756E6361
VERSION = 1
BUSY_S = 2.0
MAX_TEXT = 1 << 16
MAX_INTEGER = (1 << 63) - 1
SCHEMA = (
    "CREATE TABLE log (place INTEGER NOT NULL, witness BLOB NOT NULL) STRICT",
    "CREATE TABLE taken_up (hash TEXT NOT NULL, thread TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (hash, thread)) STRICT",
    "CREATE TABLE threads (thread TEXT NOT NULL, hash TEXT NOT NULL, inode INTEGER, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, "
    "status TEXT, flow TEXT, steps INTEGER, started_ms INTEGER, updated_ms INTEGER, message TEXT, success INTEGER, spent TEXT, "
    "PRIMARY KEY (thread, hash)) STRICT",
)
_ROWS = (
    "SELECT hash || '/' || thread, inode, size, mtime_ns, ctime_ns, status, flow, steps, started_ms, updated_ms, message, success, spent "
    "FROM threads WHERE status IN ('completed', 'failed', 'killed', 'limit') AND typeof(thread) = 'text' AND typeof(hash) = 'text' "
    "AND typeof(flow) = 'text' AND typeof(message) = 'text' AND typeof(spent) = 'text' AND typeof(steps) = 'integer' "
    "AND typeof(started_ms) = 'integer' AND typeof(updated_ms) = 'integer'"
)
_UNAVAILABLE = frozenset(
    (
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    )
)

Place = tuple[BundleHash, ThreadId]
Stamp = tuple[int, int, int, int]
Row: TypeAlias = "tuple[str, int, int, int, int, State, str, int, int, int, str, int | None, str]"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Knowledge of the index and of the end of the order log together.

    taken_up: journals that may be locked, with the place in the log at which the index learned of
    each; None: not in the index yet.
    names: ids that only the log has so far.
    """

    taken_up: dict[Place, int | None]
    names: tuple[tuple[ThreadId, str], ...]


def stamp_of(found: os.stat_result) -> Stamp:
    """Return what differs between any two states of a file; an inode may have a bit more than
    SQLite's integers.
    """
    return found.st_ino & MAX_INTEGER, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def rows(store: Store) -> tuple[dict[str, Row], set[str]]:
    """Return the kept summaries by ``HASH/ID``, and the names of the same form that have none."""

    def work(connection: sqlite3.Connection) -> tuple[dict[str, Row], set[str]]:
        names = connection.execute("SELECT hash || '/' || thread FROM threads WHERE status IS NULL")
        return {row[0]: row for row in connection.execute(_ROWS)}, {name for (name,) in names}

    return _ask(store, work) or ({}, set())


def remember(
    store: Store,
    fresh: Iterable[tuple[Stamp, ThreadSummary]],
    *,
    names: Iterable[str],
    gone: Iterable[str],
) -> None:
    """Keep summaries that were read from journals with these stamps, add names of threads without
    one, and drop threads that are gone.
    """
    kept = [row for stamp, summary in fresh if (row := _row_of(stamp, summary)) is not None]
    more, dropped = [_split(name) for name in names], [_split(name) for name in gone]
    if not (kept or more or dropped):
        return

    def work(connection: sqlite3.Connection) -> None:
        with _written(connection):
            connection.executemany(
                "INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                kept,
            )
            connection.executemany(
                "INSERT OR IGNORE INTO threads (hash, thread) VALUES (?, ?)", more
            )
            connection.executemany("DELETE FROM threads WHERE hash = ? AND thread = ?", dropped)

    _ask(store, work)


def noted(store: Store) -> Noted | None:
    """Return what may be locked, and the names that are new, and keep both; None if the index has
    to be founded first.
    """

    def work(connection: sqlite3.Connection) -> Noted | None:
        known = connection.execute("SELECT place, witness FROM log").fetchone()
        place = None if known is None else OrderPlace(offset=known[0], preceding=known[1])
        tail = (
            None
            if place is None or place.offset < len(place.preceding)
            else store.noted_since(place)
        )
        if place is None or tail is None:  # no place yet, or the log was replaced: begin anew
            return None
        listed = connection.execute("SELECT hash, thread, place FROM taken_up").fetchall()
        taken_up: dict[Place, int | None] = {
            (hash, thread): at
            for hash, thread, at in listed
            if is_bundle_hash(hash) and is_thread_id(thread)
        }
        taken_up.update(dict.fromkeys(tail.taken_up))
        if tail.place != place:
            # it cannot be written just now: the next reader reads the same lines
            with suppress(sqlite3.OperationalError):
                _advance(connection, place, tail)
        whole = {thread for _, thread in tail.taken_up}
        names = [(thread, hash) for hash, thread in tail.taken_up] + [
            (thread, "") for thread in tail.started if thread not in whole
        ]
        return Noted(taken_up=taken_up, names=tuple((thread, str(hash)) for thread, hash in names))

    return _ask(store, work)


def found(
    store: Store, place: OrderPlace, *, names: Sequence[Place], locked: Sequence[Place]
) -> None:
    """Begin anew with all names, and with the journals that were *locked* after the order log had
    been read up to *place*.
    """

    def work(connection: sqlite3.Connection) -> None:
        with _written(connection):
            connection.execute("DELETE FROM log")
            connection.execute("DELETE FROM taken_up")
            connection.execute("INSERT INTO log VALUES (?, ?)", (place.offset, place.preceding))
            connection.executemany(
                "INSERT INTO taken_up VALUES (?, ?, ?)", [(*one, place.offset) for one in locked]
            )
            connection.executemany(
                "INSERT OR IGNORE INTO threads (hash, thread) VALUES (?, ?)", names
            )

    _ask(store, work)


def release(store: Store, free: Iterable[tuple[Place, int | None]]) -> None:
    """Drop journals whose lock was seen free, unless they were taken up again since `noted` gave
    their place.
    """
    dropped = [(*one, at) for one, at in free if at is not None]
    if dropped:

        def work(connection: sqlite3.Connection) -> None:
            with _written(connection):
                connection.executemany(
                    "DELETE FROM taken_up WHERE hash = ? AND thread = ? AND place = ?", dropped
                )

        _ask(store, work)


def newest(
    store: Store, prefix: str, is_there: Callable[[ThreadId, str], bool], limit: int
) -> list[ThreadId] | None:
    """Return the greatest ids that begin with *prefix*; None if there is no index.

    Args:
        is_there: whether the store holds a thread, by id and hash; the hash is empty where it is
            not known.
    """

    def work(connection: sqlite3.Connection) -> list[ThreadId]:
        ids: dict[ThreadId, None] = {}
        query = (
            "SELECT thread, hash FROM threads WHERE thread >= ? AND thread < ? ORDER BY thread DESC"
        )
        for thread, hash in connection.execute(query, (prefix, f"{prefix}~")):
            if thread not in ids and is_thread_id(thread) and is_there(thread, hash):
                ids[thread] = None
                if len(ids) == limit:
                    break
        return list(ids)

    return _ask(store, work)


def neighbours(store: Store, ids: Iterable[ThreadId]) -> list[str]:
    """Return the ids that come just before and just after each of *ids*; nothing without an
    index.
    """

    def work(connection: sqlite3.Connection) -> list[str]:
        before, after = (
            "SELECT max(thread) FROM threads WHERE thread < ?",
            "SELECT min(thread) FROM threads WHERE thread > ?",
        )
        near = [
            connection.execute(query, (one,)).fetchone()[0]
            for one in ids
            for query in (before, after)
        ]
        return [one for one in near if isinstance(one, str)]

    return _ask(store, work) or []


def _row_of(stamp: Stamp, summary: ThreadSummary) -> tuple[object, ...] | None:
    """Return the columns of a summary; None if one of them is nothing that SQLite takes, or too
    long to be worth keeping.
    """
    if len(summary.message) > MAX_TEXT or not all(
        abs(one) <= MAX_INTEGER for one in (*stamp, summary.started_ms, summary.updated_ms)
    ):
        return None
    try:
        f"{summary.name}{summary.message}".encode()
    except UnicodeEncodeError:  # half of a pair, which JSON can hold
        return None
    return (
        summary.thread_id,
        summary.hash,
        *stamp,
        summary.status,
        summary.name,
        summary.steps,
        summary.started_ms,
        summary.updated_ms,
        summary.message,
        summary.success,
        "" if summary.spent == NOTHING else json.dumps(asdict(summary.spent)),
    )


def _split(name: str) -> tuple[str, str]:
    hash, _, thread = name.partition("/")
    return hash, thread


def _advance(connection: sqlite3.Connection, place: OrderPlace, tail: OrderTail) -> None:
    """Take in what the log has after *place*, unless another process did so since it was read."""
    with _written(connection):
        # compare and set: a process that read the same tail later must not move the place back
        moved = connection.execute(
            "UPDATE log SET place = ?, witness = ? WHERE place = ? AND witness = ?",
            (tail.place.offset, tail.place.preceding, place.offset, place.preceding),
        )
        if moved.rowcount != 1:
            return
        connection.executemany(
            "INSERT OR IGNORE INTO threads (hash, thread) VALUES ('', ?)",
            [(thread,) for thread in tail.started],
        )
        connection.executemany(
            "DELETE FROM threads WHERE hash = '' AND thread = ?",
            [(thread,) for _, thread in tail.taken_up],
        )
        connection.executemany(
            "INSERT OR IGNORE INTO threads (hash, thread) VALUES (?, ?)", tail.taken_up
        )
        connection.executemany(
            "INSERT OR REPLACE INTO taken_up VALUES (?, ?, ?)",
            [(*one, tail.place.offset) for one in tail.taken_up],
        )


@contextmanager
def _written(connection: sqlite3.Connection) -> Iterator[None]:
    """Make one transaction of a block."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class _ForeignFile(Exception):
    """The file is not an index of this version."""


def _ask(store: Store, work: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return what *work* returns; None if there is no index to be had. A file that is none is
    thrown away, and an empty one is asked.
    """
    path = store.root / NAME
    # twice: a foreign file is thrown away, and the empty one in its place is asked
    for _ in range(2):
        with _directory_lock(store.run, fcntl.LOCK_SH) as is_ours:
            if not is_ours:
                return None
            try:
                with closing(_connect(path)) as connection:
                    return work(connection)
            except _ForeignFile:
                pass
            except sqlite3.Error as exc:
                if getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _UNAVAILABLE:
                    return None
            except OSError:
                return None
        with _directory_lock(store.run, fcntl.LOCK_EX) as is_ours:
            if not is_ours or not _throw_away(path):
                return None
    return None


def _connect(path: Path) -> sqlite3.Connection:
    """Open the index, and make it if the file is empty or missing.

    Raises:
        _ForeignFile: it is something else.
    """
    # created here: SQLite would make it readable by other users
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise _ForeignFile
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o600)
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None
    )
    try:
        if not found.st_size:
            _make(connection)
        head = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        ]
        tables = tuple(
            sql
            for (sql,) in connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
            )
        )
        if head != [APPLICATION, VERSION, "delete"] or tables != SCHEMA:
            raise _ForeignFile
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection) -> None:
    with _written(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return  # another process was quicker
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for table in SCHEMA:
            connection.execute(table)


def _throw_away(path: Path) -> bool:
    try:
        for one in (*(path.with_name(path.name + suffix) for suffix in SIDE_FILES), path):
            one.unlink(missing_ok=True)
    except OSError:
        return False
    return True


@contextmanager
def _directory_lock(directory: Path, kind: int) -> Iterator[bool]:
    """Hold a lock on a directory; False if it cannot be had at once."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
