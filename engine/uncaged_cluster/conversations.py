"""Conversations as rows (`ConversationStorage`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

from uncaged_bundles.errors import RefusedError
from uncaged_engine.services.stores import (
    ChainCheck,
    LineOwner,
    conversation_seed,
    parse_conversation,
)

from .logs import SELECT_HEAD, LogHead, LogTables, head_of, pages
from .owners import opened
from .problems import parsed
from .session import DatabaseSession

_HEAD: LiteralString = f"{SELECT_HEAD} conversations WHERE name = %s"


class ConversationRows:
    """The conversations of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
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
        log = _log_head(name, self._session.query(_HEAD, [parse_conversation(name)]))
        return [line for page in pages(self._tables, log, from_line) for line in page]

    def open(self, name: str, *, take_over: bool = False) -> LineOwner:
        with self._session.transaction() as cursor:
            rows = cursor.execute(_HEAD + " FOR UPDATE", [parse_conversation(name)]).fetchall()
            log = _log_head(name, rows)
            fence = self._tables.own(cursor, log, take_over=take_over)
        return opened(self._tables, log, fence)


def _log_head(name: str, rows: Sequence[tuple[Any, ...]]) -> LogHead:
    return head_of(rows, subject=f"conversation {name}", seed=conversation_seed(name))
