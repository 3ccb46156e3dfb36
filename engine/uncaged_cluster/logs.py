"""Chained lines as rows: a table of heads, and a table of lines by log and position.

Rule 1: an append is one statement. It moves the head only if fence and digest are those that its
owner knows, and inserts the lines only if it moved the head.
Rule 2: an owner (`owners`) lives as long as the session that its head's row names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, LiteralString

from psycopg import sql
from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.records import dataclass
from uncaged_engine.services.stores import (
    MAX_LINE_BYTES,
    ChainCheck,
    FenceRaised,
    JournalBusy,
    ThreadHead,
    ending_of,
    stated_digest,
)

from .session import Cursor, DatabaseSession

SELECT_HEAD: LiteralString = "SELECT number, lines, size_bytes, digest, fence, owner FROM"
BATCH_LINES = 1000
BATCH_BYTES = 8 << 20
"""A read asks for so many lines at most; one longer line is read alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHead:
    """The row of a log's head. number: the key of its lines. subject: names it in messages."""

    number: int
    seed: bytes
    subject: str
    head: ThreadHead
    fence: int
    owner: int | None


class LogTables:
    """The heads and lines of one kind of log. kind: ``thread`` or ``conversation``."""

    def __init__(self, session: DatabaseSession, kind: str) -> None:
        self.session = session
        self.kind = kind
        self._names = {
            "heads": sql.Identifier(f"{kind}s"),
            "lines": sql.Identifier(f"{kind}_lines"),
        }
        self._has_endings = kind == "thread"
        endings = sql.SQL(", ending = %s, ended_ms = %s" if self._has_endings else "")
        self._append = sql.SQL(_APPEND).format(**self._names, endings=endings)
        self._began = sql.SQL(_BEGAN).format(**self._names, endings=endings)

    def write_lines(
        self, cursor: Cursor, number: int, check: ChainCheck, lines: Iterable[bytes]
    ) -> None:
        """Write the first lines of a new log, inside the transaction that made its head.

        Raises:
            DamagedError: a line does not follow the chain, or there is none.
        """
        last = b""
        with cursor.copy(self._statement(_COPY)) as rows:
            rows.set_types(("int8", "int4", "bytea"))
            for position, last in enumerate(check.checked(lines)):
                rows.write_row((number, position, last))
        if check.lines == 0:
            raise DamagedError(f"{check.subject} has no line")
        values: list[object] = [check.lines, check.size_bytes, check.digest]
        if self._has_endings:
            ending = ending_of(last)
            values += [ending.word, ending.ended_ms]
        cursor.execute(self._began, [*values, number])

    def read(self, log: LogHead, *, from_line: int, limit: int = 0) -> list[bytes]:
        """Return lines from *from_line* on, at most *limit* if it is not 0, checked against the
        line before them.

        Raises:
            DamagedError: a line does not fit its chain, or is missing.
        """
        first = max(0, from_line - 1)  # the line before states the digest that they follow
        count = min(limit or BATCH_LINES, BATCH_LINES) + from_line - first
        rows = self.session.query(
            self._statement(_READ),
            [MAX_LINE_BYTES, log.number, first, first + count, from_line, BATCH_BYTES],
        )
        return self.checked(log, rows, first=first, from_line=from_line)

    def checked(
        self, log: LogHead, rows: Sequence[tuple[Any, ...]], *, first: int, from_line: int
    ) -> list[bytes]:
        """Return the lines of rows (position, line) from *from_line* on, checked as by `read`.
        first: the position of the first row.
        """
        check = ChainCheck(subject=log.subject, digest=log.seed, lines=first)
        found: list[bytes] = []
        for position, line in rows:
            if position != check.lines or line is None:  # None: too long
                raise _damaged(log, check.lines)
            if position < from_line:
                check.digest = _stated(log, position, line)
                check.lines += 1
                continue
            check.add(line)
            found.append(line)
        if not found and from_line < log.head.lines:
            raise _damaged(log, from_line)
        return found

    def read_damaged(self, log: LogHead) -> bytes:
        """Return all lines as they are, each cut after `MAX_LINE_BYTES`."""
        found: list[bytes] = []
        last = -1
        while rows := self.session.query(
            self._statement(_READ_DAMAGED), [MAX_LINE_BYTES + 1, log.number, last, BATCH_LINES]
        ):
            found += [line for _, line in rows]
            last = rows[-1][0]
        return b"".join(found)

    def verify(self, log: LogHead) -> bytes:
        """Check the whole chain of a log against its head; return the last line.

        Raises:
            DamagedError: a line does not fit, or the lines are not those of the head.
        """
        position, digest, size_bytes, last = 0, log.seed, 0, b""
        while position < log.head.lines:
            lines = self.read(log, from_line=position)
            check = ChainCheck(subject=log.subject, digest=digest, lines=position)
            for line in check.checked(lines):
                last = line
            position, digest = check.lines, check.digest
            size_bytes += check.size_bytes
        found = ThreadHead(lines=position, size_bytes=size_bytes, digest=digest)
        if found != log.head or self.read(log, from_line=position):
            raise DamagedError(
                f"{log.subject}: its {position} lines are not those that its head states ({log.head.lines}); a row was changed"
            )
        return last

    def checked_head(self, log: LogHead) -> ThreadHead:
        """Return the head after a comparison with the last line, which states the same digest."""
        [line] = self.read(log, from_line=log.head.lines - 1, limit=1) or [b""]
        if _stated(log, log.head.lines - 1, line) != log.head.digest:
            raise _damaged(log, log.head.lines - 1)
        return log.head

    def own(self, cursor: Cursor, log: LogHead, *, take_over: bool) -> int:
        """Make this session the owner, inside a transaction that holds the head's row; return the
        new fence.

        Raises:
            JournalBusy: an owner lives, and *take_over* is not set.
        """
        if not take_over:
            self.require_free(log)
        [(fence,)] = cursor.execute(
            self._statement(
                "UPDATE {heads} SET fence = fence + 1, owner = %s WHERE number = %s RETURNING fence"
            ),
            [self.session.number(), log.number],
        ).fetchall()
        return int(fence)

    def require_free(self, log: LogHead) -> None:
        """Refuse a log whose owner lives, inside a transaction that holds the head's row."""
        if log.owner is not None and self.session.lives(log.owner):
            raise JournalBusy(f"{log.subject} has an owner, in session {log.owner}")

    def append(
        self,
        log: LogHead,
        fence: int,
        before: ThreadHead,
        lines: Sequence[bytes],
        after: ThreadHead,
    ) -> bool:
        """Append checked lines in one statement; return False if the head is not *before* or has
        another fence.
        """
        added, more_bytes = after.lines - before.lines, after.size_bytes - before.size_bytes
        ending = ending_of(lines[-1])
        values = [
            *(added, more_bytes, after.digest, self.session.number()),
            *((ending.word, ending.ended_ms) if self._has_endings else ()),
            *(log.number, fence),
            *(
                before.lines,
                before.digest,
                list(lines),
                self.session.channel(self.kind, log.number),
            ),
        ]
        return bool(self.session.query(self._append, values))

    def refusal(self, log: LogHead, fence: int) -> UncagedError:
        """Return the reason why an append with this fence changed nothing."""
        rows = self.session.query(
            self._statement("SELECT fence FROM {heads} WHERE number = %s"), [log.number]
        )
        if not rows:
            return DamagedError(f"{log.subject}: its row was removed; nothing was appended")
        if rows[0][0] != fence:
            return FenceRaised(
                f"{log.subject} was taken over by another owner (fence {rows[0][0]}, here {fence}); nothing was appended"
            )
        return DamagedError(f"{log.subject}: its row was changed; nothing was appended")

    def release(self, log: LogHead, fence: int) -> None:
        """End an ownership, unless another owner has the log."""
        self.session.query(
            self._statement("UPDATE {heads} SET owner = NULL WHERE number = %s AND fence = %s"),
            [log.number, fence],
        )

    def _statement(self, text: Any) -> sql.Composed:
        return sql.SQL(text).format(**self._names)


def head_of(rows: Sequence[tuple[Any, ...]], *, subject: str, seed: bytes) -> LogHead:
    """Return the head in the row of a log, or raise `NotFoundError`. rows: of `SELECT_HEAD`."""
    if not rows:
        raise NotFoundError(f"the store has no {subject}")
    number, lines, size_bytes, digest, fence, owner = rows[0]
    return LogHead(
        number=number,
        seed=seed,
        subject=subject,
        head=ThreadHead(lines=lines, size_bytes=size_bytes, digest=digest),
        fence=fence,
        owner=owner,
    )


def pages(tables: LogTables, log: LogHead, from_line: int) -> Iterator[list[bytes]]:
    """Yield the lines from *from_line* on, page by page."""
    while lines := tables.read(log, from_line=from_line):
        yield lines
        from_line += len(lines)


def _stated(log: LogHead, position: int, line: bytes) -> bytes:
    digest = stated_digest(line)
    if digest is None:
        raise _damaged(log, position)
    return digest


def _damaged(log: LogHead, position: int) -> DamagedError:
    return DamagedError(
        f"{log.subject}, line {position}: it is missing, too long, or does not follow the lines before it; the row was changed or damaged"
    )


_BEGAN = """
UPDATE {heads} SET lines = %s, size_bytes = %s, digest = %s{endings} WHERE number = %s
"""
_COPY = "COPY {lines} (log, position, line) FROM STDIN (FORMAT BINARY)"
_READ = """
SELECT position, CASE WHEN octet_length(line) <= %s THEN line END FROM (
    SELECT position, line, sum(octet_length(line)) OVER (ORDER BY position) AS total
    FROM {lines} WHERE log = %s AND position >= %s AND position < %s
) AS found
WHERE position <= %s OR total - octet_length(line) < %s ORDER BY position
"""
_READ_DAMAGED = """
SELECT position, substring(line for %s) FROM {lines}
WHERE log = %s AND position > %s ORDER BY position LIMIT %s
"""
_APPEND = """
WITH head AS (
    UPDATE {heads} SET lines = lines + %s, size_bytes = size_bytes + %s, digest = %s, owner = %s{endings}
    WHERE number = %s AND fence = %s AND lines = %s AND digest = %s RETURNING number, lines
), added AS (
    INSERT INTO {lines} (log, position, line)
    SELECT number, lines - cardinality(new.all_lines) + place - 1, line
    FROM head, (SELECT %b::bytea[] AS all_lines) AS new,
        unnest(new.all_lines) WITH ORDINALITY AS each (line, place)
)
SELECT pg_notify(%s, '') FROM head
"""
