"""Conversations as rows (`ConversationStorage`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, LiteralString

from uncaged_bundles.errors import RefusedError
from uncaged_engine.services.stores import (
    ChainCheck,
    LineOwner,
    conversation_seed,
    parse_conversation,
)

from .liveness import session_client
from .logs import SELECT_HEAD, LogHead, LogTables, head_of, pages
from .notifications import Notifications, Subscription
from .owners import opened
from .problems import parsed
from .session import DatabaseSession

_HEAD: LiteralString = f"{SELECT_HEAD} conversations WHERE name = %s"


class ConversationRows:
    """The conversations of a schema."""

    def __init__(self, session: DatabaseSession, notifications: Notifications) -> None:
        self._session = session
        self._notifications = notifications
        self._tables = LogTables(session, "conversation")

    def names(self) -> list[str]:
        rows = self._session.query("SELECT name FROM conversations ORDER BY name")
        return [parsed(parse_conversation, name, "conversations") for (name,) in rows]

    def start(self, name: str, lines: Iterable[bytes]) -> None:
        seed = conversation_seed(parse_conversation(name))
        check = ChainCheck(subject=f"conversation {name}", digest=seed)
        with self._session.transaction() as cursor:
            made = cursor.execute(
                "INSERT INTO conversations (name, digest) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING RETURNING number",
                [name, seed],
            ).fetchone()
            if made is None:
                raise RefusedError(f"{self._session.address} has a conversation {name}")
            self._tables.write_lines(cursor, made[0], check, lines)

    def read(self, name: str, *, from_line: int = 0) -> list[bytes]:
        return [line for page in pages(self._tables, self._log(name), from_line) for line in page]

    def tail(self, name: str, *, from_line: int | None) -> RowTail:
        log = self._log(name)
        channel = self._session.channel("conversation", log.number)
        return RowTail(
            self._notifications.subscribe(channel),
            lambda position, limit: self._tables.read(
                self._log(name), from_line=position, limit=limit
            ),
            from_line=log.head.lines if from_line is None else from_line,
        )

    def holder(self, name: str) -> str:
        owner = self._log(name).owner
        return "" if owner is None else session_client(self._session, owner)

    def _log(self, name: str) -> LogHead:
        return _log_head(name, self._session.query(_HEAD, [parse_conversation(name)]))

    def open(self, name: str, *, take_over: bool = False) -> LineOwner:
        with self._session.transaction() as cursor:
            rows = cursor.execute(_HEAD + " FOR UPDATE", [parse_conversation(name)]).fetchall()
            log = _log_head(name, rows)
            fence = self._tables.own(cursor, log, take_over=take_over)
        return opened(self._tables, log, fence)

    def remove(self, name: str) -> None:
        with self._session.transaction() as cursor:
            rows = cursor.execute(_HEAD + " FOR UPDATE", [parse_conversation(name)]).fetchall()
            log = _log_head(name, rows)
            self._tables.require_free(log)
            cursor.execute("DELETE FROM conversation_lines WHERE log = %s", [log.number])
            cursor.execute("DELETE FROM conversations WHERE number = %s", [log.number])
            # its followers look, and find it gone
            channel = self._session.channel("conversation", log.number)
            cursor.execute("SELECT pg_notify(%s, '')", [channel])


class RowTail:
    """Position in a conversation's rows. The connection of the process tells of new ones."""

    def __init__(
        self,
        subscription: Subscription,
        read: Callable[[int, int], list[bytes]],
        *,
        from_line: int,
    ) -> None:
        """Args: read: returns lines from a position on, at most so many."""
        self._subscription, self._read = subscription, read
        self._position = from_line
        self._is_behind = True

    def has_more(self) -> bool:
        self._is_behind = self._subscription.wait(0.0) or self._is_behind
        return self._is_behind

    def read(self, *, limit: int) -> list[bytes]:
        self._is_behind = True  # until a read finds nothing: also after one that fails
        self._subscription.listen()  # first: a line that comes after the read is notified of
        lines = self._read(self._position, limit)
        self._position += len(lines)
        self._is_behind = bool(lines)
        return lines

    def close(self) -> None:
        self._subscription.close()


def _log_head(name: str, rows: Sequence[tuple[Any, ...]]) -> LogHead:
    return head_of(rows, subject=f"conversation {name}", seed=conversation_seed(name))
