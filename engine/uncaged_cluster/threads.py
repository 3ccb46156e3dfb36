"""Threads as rows: a head for each, its lines, and its notes (`ThreadStorage`)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from typing import Any, LiteralString

from psycopg import sql
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import (
    THREAD_ID_LENGTH,
    BundleHash,
    ThreadId,
    is_bundle_hash,
    parse_bundle_hash,
    parse_thread_id,
)
from uncaged_engine.services.stores import (
    ALL,
    Candidates,
    ChainCheck,
    LineOwner,
    ThreadEnds,
    ThreadEntry,
    ThreadHead,
    ThreadNotes,
    flow_in,
    thread_seed,
)

from .logs import SELECT_HEAD, LogHead, LogTables, head_of
from .notifications import Notifications
from .owners import opened
from .problems import parsed
from .ranges import prepare_range
from .session import Cursor, DatabaseSession

SHOWN_CANDIDATES = 10
NO_NOTES = ThreadNotes()
ENTRY_COLUMNS = sql.SQL(", ").join(
    sql.Identifier("threads", name) for name in ("bundle", "name", "place", "by_thread", "archived")
)
_ENTRY: LiteralString = "SELECT bundle, name, place, by_thread, archived FROM threads"
_CANDIDATES: LiteralString = f"{_ENTRY} WHERE name >= %s AND name < %s ORDER BY name LIMIT %s"
_HEAD: LiteralString = f"{SELECT_HEAD} threads WHERE name = %s AND bundle = %s"
PINNED: LiteralString = "SELECT bundle, name FROM threads WHERE pinned ORDER BY bundle, name"
LONG_BYTES = 1 << 16
"""A longer line is read alone."""
ENDS: LiteralString = """
SELECT name, bundle, number, lines, size_bytes, digest, fence, owner, position,
    CASE WHEN octet_length(line) <= %s THEN line END
FROM threads CROSS JOIN LATERAL (
    SELECT position, line FROM thread_lines
    WHERE log = number AND position >= lines - %s AND position < lines
    UNION ALL
    SELECT position, line FROM thread_lines WHERE log = number AND position = 0 AND lines > %s
) AS found
WHERE name = ANY(%s) ORDER BY name, position
"""
_BEFORE_ALL = ThreadEntry(bundle=BundleHash(""), id=ThreadId(""), place=-2)
_AFTER_ALL = ThreadEntry(bundle=BundleHash(""), id=ThreadId(""), place=(1 << 63) - 1)
_BEHIND_ALPHABET = "a"
"""Sorts behind each character of an id, in the collation ``C``."""


class ThreadRows:
    """The threads of a schema."""

    def __init__(self, session: DatabaseSession, notifications: Notifications) -> None:
        self._session = session
        self._tables = LogTables(session, "thread")
        self._notifications = notifications

    def start(
        self, entry: ThreadEntry, lines: Iterable[bytes], notes: ThreadNotes = NO_NOTES
    ) -> None:
        bundle, thread = parse_bundle_hash(entry.bundle), parse_thread_id(entry.id)
        seed = thread_seed(bundle, thread)
        check = ChainCheck(subject=f"thread {thread}", digest=seed)
        rest = iter(lines)
        first = list(islice(rest, 1))
        flow = flow_in(first[0]) if first else None
        with self._session.transaction() as cursor:
            made = cursor.execute(
                "INSERT INTO threads (name, bundle, place, by_thread, archived, digest, flow)"
                " VALUES (%s, %s, CASE WHEN %s THEN nextval('start_order') ELSE -1 END, %s, %s, %s, %s)"
                " ON CONFLICT (name) DO NOTHING RETURNING number",
                [
                    *(thread, bundle, entry.place >= 0, entry.by_thread, entry.archived, seed),
                    flow or "",
                ],
            ).fetchone()
            if made is None:
                raise RefusedError(f"{self._session.address} has a thread {thread}")
            self._tables.write_lines(cursor, made[0], check, chain(first, rest))
            # crash here: the lines are sent and not committed; the thread is not there
            cursor.execute(
                "INSERT INTO thread_notes (thread, info, origin) VALUES (%s, %s, %s)",
                [made[0], notes.info, notes.origin],
            )
        prepare_range(self._session, made[0])

    def open(self, bundle: BundleHash, thread: ThreadId, *, take_over: bool = False) -> LineOwner:
        with self._session.transaction() as cursor:
            log = self._locked(cursor, bundle, thread)
            fence = self._tables.own(cursor, log, take_over=take_over)
            cursor.execute(
                "UPDATE threads SET archived = false WHERE number = %s AND archived", [log.number]
            )
        return opened(self._tables, log, fence)

    def read(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, limit: int = 0
    ) -> list[bytes]:
        log = self._log(bundle, thread)
        return self._tables.read(log, from_line=from_line, limit=limit)

    def read_damaged(self, bundle: BundleHash, thread: ThreadId) -> bytes:
        return self._tables.read_damaged(self._log(bundle, thread))

    def follow(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, timeout_s: float
    ) -> Generator[list[bytes]]:
        log = self._log(bundle, thread)
        subscription = self._notifications.subscribe(self._session.channel("thread", log.number))
        try:
            while True:
                subscription.listen()  # first: a line that comes after the read below is notified of
                while lines := self._tables.read(log, from_line=from_line):
                    yield lines
                    from_line += len(lines)
                if not subscription.wait(timeout_s):
                    yield []
        finally:
            subscription.close()

    def head(self, bundle: BundleHash, thread: ThreadId) -> ThreadHead:
        return self._tables.checked_head(self._log(bundle, thread))

    def heads(self, entries: Collection[ThreadEntry]) -> dict[ThreadId, ThreadHead]:
        rows = self._session.query(
            "SELECT name, lines, size_bytes, digest FROM threads WHERE name = ANY(%s)",
            [[parse_thread_id(one.id) for one in entries]],
        )
        return {
            parsed(parse_thread_id, name, "threads"): ThreadHead(
                lines=lines, size_bytes=size_bytes, digest=digest
            )
            for name, lines, size_bytes, digest in rows
        }

    def ends(self, entries: Collection[ThreadEntry], *, limit: int) -> dict[ThreadId, ThreadEnds]:
        # one line more: it states the digest that the first of the last ones follows
        values = [LONG_BYTES, limit + 1, limit + 1, [parse_thread_id(one.id) for one in entries]]
        rows = self._session.query(ENDS, values)
        of_thread = {
            name: list(found) for name, found in groupby(rows, key=lambda row: str(row[0]))
        }
        ends = {}
        for one in entries:
            with suppress(NotFoundError, DamagedError):
                found = of_thread.get(one.id, [])
                log = _log_head(
                    one.bundle, one.id, [row[2:8] for row in found if row[1] == one.bundle]
                )
                lines = [row[8:] for row in found]
                ends[one.id] = (
                    self._ends_of(log, limit=limit)
                    if any(line is None for _, line in lines)
                    else self._ends_in(log, lines, limit=limit)
                )
        return ends

    def _ends_in(self, log: LogHead, rows: Sequence[tuple[Any, ...]], *, limit: int) -> ThreadEnds:
        """Return the ends in rows (position, line): the first one, and one more than the last."""
        check, from_line = self._tables.checked, max(0, log.head.lines - limit)
        tail = [row for row in rows if row[0] >= from_line - 1]
        last = check(log, tail, first=max(0, from_line - 1), from_line=from_line)
        [first] = check(log, rows[:1], first=0, from_line=0)
        return ThreadEnds(head=log.head, first=first, last=last)

    def _ends_of(self, log: LogHead, *, limit: int) -> ThreadEnds:
        """Read the ends of one thread whose lines may be long."""
        from_line = max(0, log.head.lines - limit)
        last: list[bytes] = []
        # a page may have fewer lines than there are, and new ones may have come since the head
        while len(last) < log.head.lines - from_line:
            last += self._tables.read(log, from_line=from_line + len(last))
        first = last if from_line == 0 else self._tables.read(log, from_line=0, limit=1)
        return ThreadEnds(head=log.head, first=first[0], last=last[: log.head.lines - from_line])

    def notes(self, bundle: BundleHash, thread: ThreadId) -> ThreadNotes:
        log = self._log(bundle, thread)
        rows = self._session.query(
            "SELECT info, origin FROM thread_notes WHERE thread = %s", [log.number]
        )
        if not rows:  # without its origin, a stranger's thread would pass for the team's
            raise DamagedError(f"thread {thread}: the row of its notes is missing")
        return ThreadNotes(info=rows[0][0], origin=rows[0][1])

    def replace_info(self, bundle: BundleHash, thread: ThreadId, info: bytes) -> None:
        log = self._log(bundle, thread)
        self._session.query(
            "UPDATE thread_notes SET info = %s WHERE thread = %s", [info, log.number]
        )

    def archive(self, bundle: BundleHash, thread: ThreadId) -> None:
        with self._session.transaction() as cursor:
            log = self._locked(cursor, bundle, thread)
            self._tables.require_free(log)
            cursor.execute("UPDATE threads SET archived = true WHERE number = %s", [log.number])

    def locate(self, prefix: str) -> ThreadEntry:
        start = prefix.upper()
        if not start or len(start) > THREAD_ID_LENGTH:
            raise UsageError(f"{prefix[:80]!r} is neither a thread id nor the start of one")
        rows = (
            self._session.query(
                _CANDIDATES, [start, start + _BEHIND_ALPHABET, SHOWN_CANDIDATES + 1]
            )
            if start.isalnum() and start.isascii()
            else []
        )
        found = [entry_of(row) for row in rows]
        if not found:
            raise NotFoundError(f"{self._session.address} has no thread {prefix!r}; check the id")
        if len(found) > 1:
            listed = ", ".join(entry.id for entry in found[:SHOWN_CANDIDATES])
            more = " …" if len(found) > SHOWN_CANDIDATES else ""
            raise UsageError(
                f"{prefix!r} is the start of several thread ids: {listed}{more}; type more of it"
            )
        return found[0]

    def page(
        self,
        *,
        after: ThreadEntry | None = None,
        limit: int,
        newest_first: bool = False,
        among: Candidates = ALL,
    ) -> list[ThreadEntry]:
        last = after or (_AFTER_ALL if newest_first else _BEFORE_ALL)
        statement, values = page_of(among, last, limit=limit, newest_first=newest_first)
        return [entry_of(row) for row in self._session.query(statement, values)]

    def removed(self) -> list[tuple[BundleHash, ThreadId]]:
        rows = self._session.query("SELECT bundle, name FROM removed_threads ORDER BY bundle, name")
        return [
            (
                parsed(parse_bundle_hash, bundle, "removed_threads"),
                parsed(parse_thread_id, name, "removed_threads"),
            )
            for bundle, name in rows
        ]

    def is_removed(self, bundle: BundleHash | None, thread: ThreadId) -> bool:
        if bundle is None:
            # the index begins with the bundle, of which there are few
            found = self._session.query(
                "SELECT 1 FROM bundles JOIN removed_threads ON bundle = hash WHERE name = %s LIMIT 1",
                [parse_thread_id(thread)],
            )
        else:
            found = self._session.query(
                "SELECT 1 FROM removed_threads WHERE bundle = %s AND name = %s",
                [parse_bundle_hash(bundle), parse_thread_id(thread)],
            )
        return bool(found)

    def pinned(self) -> list[tuple[BundleHash, ThreadId]]:
        rows = self._session.query(PINNED)
        return [
            (
                parsed(parse_bundle_hash, bundle, "threads"),
                parsed(parse_thread_id, name, "threads"),
            )
            for bundle, name in rows
        ]

    def set_pinned(self, bundle: BundleHash, thread: ThreadId, *, pinned: bool) -> None:
        rows = self._session.query(
            "UPDATE threads SET pinned = %s WHERE name = %s AND bundle = %s RETURNING 1",
            [pinned, parse_thread_id(thread), parse_bundle_hash(bundle)],
        )
        if pinned and not rows:
            raise NotFoundError(f"{self._session.address}: there is no thread {thread}")

    def mark_removed(self, bundle: BundleHash, thread: ThreadId) -> None:
        self._session.query(
            "INSERT INTO removed_threads (bundle, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [parse_bundle_hash(bundle), parse_thread_id(thread)],
        )

    def _log(self, bundle: BundleHash, thread: ThreadId) -> LogHead:
        names = [parse_thread_id(thread), parse_bundle_hash(bundle)]
        return _log_head(bundle, thread, self._session.query(_HEAD, names))

    def _locked(self, cursor: Cursor, bundle: BundleHash, thread: ThreadId) -> LogHead:
        """Return the head, whose row no other transaction changes until the end of this one."""
        names = [parse_thread_id(thread), parse_bundle_hash(bundle)]
        return _log_head(bundle, thread, cursor.execute(_HEAD + " FOR UPDATE", names).fetchall())


def page_of(
    among: Candidates, last: ThreadEntry, *, limit: int, newest_first: bool
) -> tuple[LiteralString, list[object]]:
    """Return the statement of a page, and its values."""
    beyond, order = ("<", "place DESC, name DESC") if newest_first else (">", "place, name")
    wanted: LiteralString = f"(place, name) {beyond} (%s, %s)"
    values: list[object] = [last.place, last.id]
    if among.flow is not None:
        wanted += " AND bundle = %s" if is_bundle_hash(among.flow) else " AND flow = %s"
        values.append(among.flow)
    if among.endings is None:
        return f"{_ENTRY} WHERE {wanted} ORDER BY {order} LIMIT %s", [*values, limit]
    # a part for each ending, which an index has in order
    part: LiteralString = f"({_ENTRY} WHERE {wanted} AND ending = %s ORDER BY {order} LIMIT %s)"
    parts = " UNION ALL ".join([part] * len(among.endings))
    several = [value for one in sorted(among.endings) for value in (*values, one, limit)]
    statement: LiteralString = f"SELECT * FROM ({parts}) AS found ORDER BY {order} LIMIT %s"  # noqa: S608 - of constants
    return statement, [*several, limit]


def _log_head(bundle: BundleHash, thread: ThreadId, rows: Sequence[tuple[Any, ...]]) -> LogHead:
    return head_of(rows, subject=f"thread {thread}", seed=thread_seed(bundle, thread))


def entry_of(row: Sequence[Any]) -> ThreadEntry:
    """Return the entry in a row of `ENTRY_COLUMNS`."""
    bundle, name, place, by_thread, archived = row
    return ThreadEntry(
        bundle=parsed(parse_bundle_hash, bundle, "threads"),
        id=parsed(parse_thread_id, name, "threads"),
        place=place,
        by_thread=by_thread,
        archived=archived,
    )
