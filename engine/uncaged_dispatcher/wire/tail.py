"""Records of a conversation as they reach its log, from any number on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.conversations import tail_of

from ..conversations.records import parse

MAX_RECORDS = 200


class LogTail:
    """Position in the log of a conversation."""

    def __init__(self, store: Store, id: str, after: int | None) -> None:
        """Args: after: skip the records up to this number; None skips those that are there now.

        Raises:
            NotFoundError: there is no such conversation.
        """
        self._id = id
        # each line is one record; the first one, number 0, has no number in it
        self._lines = tail_of(store, id, from_line=None if after is None else after + 1)

    def has_more(self) -> bool:
        """Tell, without waiting, whether `read` may find a record."""
        return self._lines.has_more()

    def read(self) -> Sequence[dict[str, Any]]:
        """Return the next records, in order; none if there are no more at present.

        Raises:
            NotFoundError: the conversation was deleted. DamagedError: a line is no record.
            StorageError: the store is away; the next read goes on from the same place.
        """
        lines = self._lines.read(limit=MAX_RECORDS)
        try:
            return [record for record in map(parse, lines) if "seq" in record]
        except ValueError as exc:
            raise DamagedError(
                f"conversation {self._id}: a line that is no record: {exc}; it was left as it is"
            ) from exc

    def close(self) -> None:
        """End the reading. Idempotent."""
        self._lines.close()
