"""SQLite index of a store's threads: names, summaries of threads that have stopped, and journals
that may be locked.

Journals are the only truth; the file may be deleted at any time.

Rule 1: a summary is kept with the stamp of the journal's file (inode, size, times of change in ns)
  from before it was read, and counts only while the file has that stamp. A resume, a cut tail, a
  restored backup or an edit change it, whatever a clock says.
Rule 2: a summary is `sure` if the journal's bytes decide it alone, as long as no process holds the
  lock. One that is not has an effect about which a person may have to decide: its journal is read
  before it is shown. Of any other thread the index knows the name.
Rule 3: a process writes to the order log after it took a journal's lock, and before it appends. So
  whatever is locked is in `taken_up`, or in the log after the place that the index knows. A row
  goes only if its lock was seen free after the log had been read that far, and if it was not taken
  up again since. A thread that is taken up loses its summary, and gets none from what was read
  before that.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

from uncaged_bundles.ids import BundleHash, ThreadId, is_bundle_hash, is_thread_id
from uncaged_bundles.storage.order import OrderPlace, OrderTail
from uncaged_bundles.storage.store import Store

from ..journal.usage import NOTHING
from .index_file import ask, written

if TYPE_CHECKING:  # completion does without
    from .observe import ThreadSummary
    from .states import State

MAX_TEXT = 1 << 16
LOST = "\0"
"""In no text that is kept: SQLite reads zeros where another process has cut the file."""
MAX_INTEGER = (1 << 63) - 1
COLUMNS = "inode, size, mtime_ns, ctime_ns, status, flow, agents, steps, started_ms, updated_ms, message, success, spent"
"""The columns of a summary, after its name in a `Row`."""
WHOLE = (
    "typeof(thread) = 'text' AND typeof(hash) = 'text' AND typeof(flow) = 'text' AND typeof(message) = 'text' "
    "AND typeof(spent) = 'text' AND typeof(agents) = 'text' AND typeof(steps) = 'integer' "
    "AND typeof(started_ms) = 'integer' AND typeof(updated_ms) = 'integer'"
)
_ENDED = "sure IS 1 AND status IN ('completed', 'failed', 'killed', 'limit')"
_ROWS = f"SELECT hash || '/' || thread, {COLUMNS} FROM threads WHERE {_ENDED} AND {WHOLE}"  # noqa: S608 - constants
_NAMES = f"SELECT hash || '/' || thread FROM threads WHERE NOT ({_ENDED})"  # noqa: S608 - constants
_FORGET = "UPDATE threads SET status = NULL, sure = NULL WHERE thread = ? AND hash = ?"
_KEEP = (
    "UPDATE threads SET inode = :inode, size = :size, mtime_ns = :mtime_ns, ctime_ns = :ctime_ns, status = :status, sure = :sure, "
    "flow = :flow, agents = :agents, cost = :cost, steps = :steps, started_ms = :started_ms, updated_ms = :updated_ms, "
    "success = :success, spent = :spent, message = :message WHERE thread = :thread AND hash = :hash"
)
_NAME = (
    "INSERT INTO threads (hash, thread, place) VALUES "
    "(?1, ?2, coalesce((SELECT max(place) FROM threads WHERE thread = ?2), -1)) ON CONFLICT DO NOTHING"
)
Place = tuple[BundleHash, ThreadId]
Stamp = tuple[int, int, int, int]
Row: TypeAlias = (
    "tuple[str, int, int, int, int, State, str, str, int, int, int, str, int | None, str]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Knowledge of the index and of the end of the order log together.

    taken_up: journals that may be locked, with the place in the log at which the index learned of
    each; None: not in the index yet.
    names: ids that only the log had so far. place: the end of the log. is_kept: whether the index
    has all that by now.
    """

    taken_up: dict[Place, int | None]
    names: tuple[tuple[ThreadId, str], ...]
    place: OrderPlace
    is_kept: bool


def stamp_of(found: os.stat_result) -> Stamp:
    """Return what differs between any two states of a file; an inode may have a bit more than
    SQLite's integers.
    """
    return found.st_ino & MAX_INTEGER, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def rows(store: Store) -> tuple[dict[str, Row], set[str]]:
    """Return the kept summaries of ended threads by ``HASH/ID``, and the other threads' names."""

    def work(connection: sqlite3.Connection) -> tuple[dict[str, Row], set[str]]:
        names = connection.execute(_NAMES)
        return {row[0]: row for row in connection.execute(_ROWS)}, {name for (name,) in names}

    return ask(store, work) or ({}, set())


def remember(
    store: Store,
    fresh: Iterable[tuple[Stamp, ThreadSummary, bool]],
    *,
    since: OrderPlace | None,
    names: Iterable[str] = (),
    gone: Iterable[str] = (),
) -> None:
    """Keep summaries that were read from journals with these stamps, add names of threads without
    one, and drop threads that are gone.

    Args:
        fresh: with each summary, whether it is `sure`. since: the end of the order log before they
            were read; None: not known, so that a summary is not kept where others rely on it.
    """
    kept = [
        row for stamp, summary, sure in fresh if (row := _row_of(stamp, summary, sure)) is not None
    ]
    more, dropped = [_split(name) for name in names], [_split(name) for name in gone]
    if not (kept or more or dropped):
        return

    def work(connection: sqlite3.Connection) -> None:
        with written(connection):
            connection.executemany(_NAME, [*more, *((row["hash"], row["thread"]) for row in kept)])
            connection.executemany(_KEEP, _unchanged(store, connection, kept, since))
            connection.executemany("DELETE FROM threads WHERE hash = ? AND thread = ?", dropped)

    ask(store, work)


def _unchanged(
    store: Store,
    connection: sqlite3.Connection,
    kept: list[dict[str, object]],
    since: OrderPlace | None,
) -> Iterable[dict[str, object]]:
    """Return the rows of threads that no process took up since the log had its end at *since*.
    A process that advances the index after this transaction forgets what was taken up later.
    """
    tail = None if since is None else store.noted_since(since)
    if tail is None:
        founded = connection.execute("SELECT count(*) FROM log").fetchone()[0]
        return () if founded else kept
    taken_up = set(tail.taken_up)
    return (row for row in kept if (row["hash"], row["thread"]) not in taken_up)


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
        is_kept = True
        if tail.place != place:
            try:
                _advance(connection, place, tail)
            # it cannot be written just now: the next reader reads the same lines
            except sqlite3.OperationalError:
                is_kept = False
        whole = {thread for _, thread in tail.taken_up}
        names = [(thread, hash) for hash, thread in tail.taken_up] + [
            (thread, "") for thread in tail.started if thread not in whole
        ]
        return Noted(
            taken_up=taken_up,
            names=tuple((thread, str(hash)) for thread, hash in names),
            place=tail.place,
            is_kept=is_kept,
        )

    return ask(store, work)


def found(
    store: Store,
    place: OrderPlace,
    *,
    started: Mapping[ThreadId, int],
    journals: Sequence[tuple[Place, Stamp | None]],
    locked: Sequence[Place],
) -> None:
    """Begin anew with all *journals*, their stamps and the places of their starts in the order log,
    and with those that were *locked* after the log had been read up to *place*.
    """
    unlocked = {one: stamp for one, stamp in journals if stamp is not None} | dict.fromkeys(locked)

    def work(connection: sqlite3.Connection) -> None:
        with written(connection):
            connection.execute("DELETE FROM log")
            connection.execute("DELETE FROM taken_up")
            connection.execute("INSERT INTO log VALUES (?, ?)", (place.offset, place.preceding))
            connection.executemany(
                "INSERT INTO taken_up VALUES (?, ?, ?)", [(*one, place.offset) for one in locked]
            )
            rows = connection.execute(
                "SELECT hash, thread, inode, size, mtime_ns, ctime_ns FROM threads WHERE status IS NOT NULL"
            ).fetchall()
            connection.executemany(
                _FORGET, [(row[1], row[0]) for row in rows if unlocked.get(row[:2]) != row[2:]]
            )
            connection.executemany(
                "INSERT INTO threads (hash, thread, place) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET place = excluded.place",
                [(hash, thread, started.get(thread, -1)) for (hash, thread), _ in journals],
            )

    ask(store, work)


def release(store: Store, free: Iterable[tuple[Place, int | None]]) -> None:
    """Drop journals whose lock was seen free, unless they were taken up again since `noted` gave
    their place.
    """
    dropped = [(*one, at) for one, at in free if at is not None]
    if dropped:

        def work(connection: sqlite3.Connection) -> None:
            with written(connection):
                connection.executemany(
                    "DELETE FROM taken_up WHERE hash = ? AND thread = ? AND place = ?", dropped
                )

        ask(store, work)


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

    return ask(store, work)


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

    return ask(store, work) or []


def _row_of(stamp: Stamp, summary: ThreadSummary, sure: bool) -> dict[str, object] | None:
    """Return the columns of a summary; None if one of them is nothing that SQLite takes, or too
    long to be worth keeping.
    """
    agents = json.dumps(summary.agents) if summary.agents else ""
    if len(summary.message) + len(agents) > MAX_TEXT or not all(
        abs(one) <= MAX_INTEGER for one in (*stamp, summary.started_ms, summary.updated_ms)
    ):
        return None
    try:
        f"{summary.name}{summary.message}".encode()
    except UnicodeEncodeError:  # half of a pair, which JSON can hold
        return None
    if LOST in summary.name or LOST in summary.message:
        return None
    inode, size, mtime_ns, ctime_ns = stamp
    return {
        "thread": summary.thread_id,
        "hash": summary.hash,
        "inode": inode,
        "size": size,
        "mtime_ns": mtime_ns,
        "ctime_ns": ctime_ns,
        "status": summary.status,
        "sure": int(sure),
        "flow": summary.name,
        "agents": agents,
        "cost": summary.spent.cost,
        "steps": summary.steps,
        "started_ms": summary.started_ms,
        "updated_ms": summary.updated_ms,
        "success": summary.success,
        "spent": "" if summary.spent == NOTHING else json.dumps(asdict(summary.spent)),
        "message": summary.message,
    }


def _split(name: str) -> tuple[str, str]:
    hash, _, thread = name.partition("/")
    return hash, thread


def _advance(connection: sqlite3.Connection, place: OrderPlace, tail: OrderTail) -> None:
    """Take in what the log has after *place*, unless another process did so since it was read."""
    with written(connection):
        # compare and set: a process that read the same tail later must not move the place back
        moved = connection.execute(
            "UPDATE log SET place = ?, witness = ? WHERE place = ? AND witness = ?",
            (tail.place.offset, tail.place.preceding, place.offset, place.preceding),
        )
        if moved.rowcount != 1:
            return
        connection.executemany(
            "INSERT OR IGNORE INTO threads (hash, thread, place) VALUES ('', ?, ?)",
            tail.started.items(),
        )
        connection.executemany(_NAME, tail.taken_up)
        connection.executemany(_FORGET, [(thread, hash) for hash, thread in tail.taken_up])
        connection.executemany(
            "DELETE FROM threads WHERE hash = '' AND thread = ?",
            [(thread,) for _, thread in tail.taken_up],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO taken_up VALUES (?, ?, ?)",
            [(*one, tail.place.offset) for one in tail.taken_up],
        )
