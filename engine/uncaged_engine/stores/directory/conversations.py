"""Conversations of a directory: ``conversations/NAME.jsonl``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import is_thread_id
from uncaged_bundles.storage.files import held, sync_directory, write_atomically

from ...journal.chain import conversation_seed
from ...journal.chained import ChainedFile, read_chained
from ...journal.journal import JournalBusy
from ...journal.lock import holding, is_live
from ..chains import ChainCheck, joined
from ..names import parse_conversation
from .owners import FileOwner
from .tails import FileTail

SUFFIX = ".jsonl"


class DirectoryConversations:
    """The folder ``conversations``, as `ConversationStorage`."""

    def __init__(self, root: Path) -> None:
        self._directory = root / "conversations"

    def names(self) -> list[str]:
        if not self._directory.is_dir():
            return []
        files = (path.name for path in self._directory.iterdir() if path.suffix == SUFFIX)
        return sorted(filter(is_thread_id, (name.removesuffix(SUFFIX) for name in files)))

    def start(self, name: str, lines: Iterable[bytes]) -> None:
        path = self.path_of(name)
        data = joined(ChainCheck(f"conversation {name}", conversation_seed(name)), lines)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        with held(self._directory, alone=True):
            if path.exists():
                raise RefusedError(f"there is a conversation {name} already")
            write_atomically(path, data)

    def read(self, name: str, *, from_line: int = 0) -> list[bytes]:
        path = self.path_of(name)
        try:
            return read_chained(path, conversation_seed(name)).lines[from_line:]
        except NotFoundError as exc:
            raise NotFoundError(f"no conversation {name}") from exc

    def tail(self, name: str, *, from_line: int | None) -> FileTail:
        return FileTail(self.path_of(name), from_line)

    def holder(self, name: str) -> str:
        return "another process of this machine" if is_live(self.path_of(name)) else ""

    def open(self, name: str, *, take_over: bool = False) -> FileOwner:  # noqa: ARG002 - a dead owner holds no file's lock
        file = ChainedFile.open(self.path_of(name), conversation_seed(name))
        if file is None:
            raise JournalBusy(f"conversation {name} is in use by another process")
        check = ChainCheck(f"conversation {name}", conversation_seed(name))
        for line in file.lines:
            check.add(line)
        return FileOwner(file, check.subject, check.head, ended=False)

    def remove(self, name: str) -> None:
        """Remove a conversation with the files beside it. Raises: as `ConversationStorage`."""
        path = self.path_of(name)
        if not path.exists():
            raise NotFoundError(f"no conversation {name}")
        with holding(path) as fd:
            if fd is None:
                raise JournalBusy(f"conversation {name} is in use by another process")
            # the log is the last to go: what is left without it belongs to no conversation
            for other in self._directory.glob(f"{name}.*"):
                if other != path:
                    other.unlink(missing_ok=True)
            path.unlink()
            sync_directory(self._directory)

    def path_of(self, name: str) -> Path:
        """Return the path of a conversation's file."""
        return self._directory / f"{parse_conversation(name)}{SUFFIX}"
