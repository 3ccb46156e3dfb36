"""File of the index (``index.db``): opened, checked, made anew, shared with other processes.

Journals are the only truth; the file may be deleted at any time.

A file that is damaged, foreign or of another version is thrown away; one that cannot be
used just now is done without. Connections share a lock on the directory ``run``, and the process
that throws the file away holds it alone: SQLite finds its side files by name, and must not find
those of another file.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from uncaged_bundles.storage.store import Store

NAME = "index.db"
SIDE_FILES = ("-journal", "-wal", "-shm")
APPLICATION = 0x756E6361
VERSION = 2
BUSY_S = 2.0
SCHEMA = (
    "CREATE INDEX by_start ON threads (place, thread, hash, status, sure, success, flow, cost, started_ms, updated_ms)",
    "CREATE TABLE log (place INTEGER NOT NULL, witness BLOB NOT NULL) STRICT",
    "CREATE TABLE taken_up (hash TEXT NOT NULL, thread TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (hash, thread)) STRICT",
    "CREATE TABLE threads (thread TEXT NOT NULL, hash TEXT NOT NULL, place INTEGER NOT NULL DEFAULT -1, "
    "inode INTEGER, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, status TEXT, sure INTEGER, flow TEXT, agents TEXT, cost REAL, "
    "steps INTEGER, started_ms INTEGER, updated_ms INTEGER, success INTEGER, spent TEXT, message TEXT, PRIMARY KEY (thread, hash)) STRICT",
)
"""By name. `threads.place`: the place of the start in the order log; -1: it is not there."""
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

T = TypeVar("T")


class _ForeignFile(Exception):
    """The file is not an index of this version."""


def ask(store: Store, work: Callable[[sqlite3.Connection], T]) -> T | None:
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
    with written(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return  # another process was quicker
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in reversed(SCHEMA):  # tables before what belongs to them
            connection.execute(statement)


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


@contextmanager
def written(connection: sqlite3.Connection) -> Iterator[None]:
    """Make one transaction of a block."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
