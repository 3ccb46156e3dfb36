"""Conversations of a shared store, copied into a directory of this process to be read, and written
in the store by one owner at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store

from ..journal.chain import conversation_seed, seal
from ..journal.chained import ChainedFile
from ..journal.journal import JournalBusy
from ..stores.directory.conversations import DirectoryConversations
from ..stores.protocol import ConversationStorage, LineOwner, LineTail


class OwnedConversation:
    """A conversation that this process owns, as `ChainedFile`. A line is in the copy at once, and
    in the store when it is flushed.
    """

    def __init__(self, file: ChainedFile, owner: LineOwner, left: Callable[[], None]) -> None:
        """Args: left: called once it is released."""
        self.lines: Sequence[bytes] = file.lines
        self._file = file
        self._owner = owner
        self._left = left
        self._unsent: list[bytes] = []

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        """Seal an open record and write it; return the sealed line. Raises: as `flush`."""
        line = self._file.append(body)
        self._unsent.append(line)
        if flush:
            self.flush()
        return line

    def flush(self) -> None:
        """Write all that was appended into the store.

        Raises:
            FenceRaised: another owner took over. StorageError: the store refuses.
        """
        if self._unsent:
            self._owner.append(self._unsent)
            self._unsent.clear()

    def close(self) -> None:
        """Write what is left, if the store takes it, and release the conversation. Idempotent."""
        try:
            self.flush()
        except UncagedError:
            self._unsent.clear()  # as after the death of the process
        self._file.close()
        self._left()
        self._owner.close()


class ConversationCopies:
    """Conversations of one store in one directory."""

    def __init__(self, storage: ConversationStorage, root: Path) -> None:
        self._storage = storage
        self._copies = DirectoryConversations(root)
        self._known: dict[str, int] = {}
        self._owned: set[str] = set()
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        """Return the names of all conversations, in order."""
        return self._storage.names()

    def start(self, name: str, body: bytes) -> None:
        """Make a conversation with an open record as its first line. Raises: as
        `ConversationStorage.start`.
        """
        line, _ = seal(conversation_seed(name), body)
        self._storage.start(name, [line])

    def read(self, name: str, *, from_line: int) -> list[bytes]:
        """Return a conversation's lines, as `ConversationStorage.read`."""
        return self._storage.read(name, from_line=from_line)

    def holder(self, name: str) -> str:
        """Return the process that has a conversation, as `ConversationStorage.holder`."""
        return self._storage.holder(name)

    def tail(self, name: str, *, from_line: int | None) -> LineTail:
        """Return a reader of a conversation's lines, as `ConversationStorage.tail`."""
        return self._storage.tail(name, from_line=from_line)

    def bring(self, name: str) -> None:
        """Copy a conversation, or its lines since the last time, unless this process owns it.

        Raises: as `ConversationStorage.read`.
        """
        with self._lock:
            if name in self._owned:
                return
            known = self._known.get(name, 0)
            lines = self._storage.read(name, from_line=known)
            if not known:
                self._copies.start(name, lines)
            elif lines:
                with self._copies.open(name) as copy:
                    copy.append(lines)
            self._known[name] = known + len(lines)

    def open(self, name: str) -> OwnedConversation | None:
        """Become the owner of a conversation; None while another process is.

        Raises: as `ConversationStorage.open`.
        """
        with self._lock:
            try:
                owner = self._storage.open(name)
            except JournalBusy:
                return None
            try:
                self.bring(name)
                file = ChainedFile.open(self._copies.path_of(name), conversation_seed(name))
                if file is None:
                    raise JournalBusy(f"the copy of conversation {name} is in use")
            except BaseException:
                owner.close()
                raise
            self._owned.add(name)
            return OwnedConversation(file, owner, partial(self._forget, name))

    def remove(self, name: str) -> None:
        """Remove a conversation, and its copy. Raises: as `ConversationStorage.remove`."""
        self._storage.remove(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Forget a copy that may have lines that the store does not have."""
        with self._lock:
            self._owned.discard(name)
            if self._known.pop(name, 0):
                self._copies.path_of(name).unlink(missing_ok=True)


def copies_of(store: Store) -> ConversationCopies | None:
    """Return the copies of a shared store's conversations; None for a directory."""
    found = getattr(store, "conversations", None)
    return found if isinstance(found, ConversationCopies) else None


def remove_from(store: Store, name: str) -> None:
    """Remove a conversation of a directory or a shared store. Raises: as
    `ConversationStorage.remove`.
    """
    (copies_of(store) or DirectoryConversations(store.documents)).remove(name)


def tail_of(store: Store, name: str, *, from_line: int | None) -> LineTail:
    """Return a reader of a conversation's lines, in a directory or a shared store. Args, raises:
    as `ConversationStorage.tail`.
    """
    copies = copies_of(store)
    if copies is None:
        return DirectoryConversations(store.documents).tail(name, from_line=from_line)
    return copies.tail(name, from_line=from_line)
