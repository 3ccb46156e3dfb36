"""Journals in memory: a second implementation of the engine's protocol, without files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.blobs import Blobs, blob_hash
from uncaged_engine.journal.journal import JournalBusy
from uncaged_engine.journal.origin import ThreadOrigin
from uncaged_engine.journal.recover import History, recover
from uncaged_engine.journal.trouble import Trouble


class MemoryBlobs(Blobs):
    """Blobs in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        name = blob_hash(data)
        self.kept[name] = data
        return name

    def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise DamagedError(f"blob {name} is missing from memory")
        return self.kept[name]


@dataclass(slots=True, kw_only=True)
class MemoryThread:
    """A thread's lines. flushed_bytes: how many of them a power cut would leave."""

    bundle: BundleHash
    thread: ThreadId
    data: bytearray
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    flushed_bytes: int = 0
    locked: bool = False
    note: Trouble | None = None

    @classmethod
    def create(cls, body: bytes, bundle: BundleHash, thread: ThreadId) -> MemoryThread:
        line, _ = chain.seal(chain.seed(bundle, thread), body)
        return cls(bundle=bundle, thread=thread, data=bytearray(line), flushed_bytes=len(line))

    def open(self) -> MemoryJournal:
        if self.locked:
            raise JournalBusy(f"thread {self.thread} is in use by another owner")
        self.locked = True
        return MemoryJournal(self)


class MemoryJournal:
    """The lines of a thread in memory, with their owner's lock."""

    def __init__(self, kept: MemoryThread) -> None:
        self._kept = kept
        self._is_open = True
        self.place = f"memory of thread {kept.thread}"
        self.blobs: Blobs = kept.blobs
        self.history = self.reread()
        self.flushed_bytes = 0
        self.on_flush: Callable[[int], None] = lambda _size: None
        self.on_flush_time: Callable[[float], None] | None = None
        self._digest = self.history.digest
        self._has_ended = self.history.end is not None
        self._blob_bytes = self.history.blob_bytes

    def kept_bytes(self) -> int:
        return len(self._kept.data) + self._blob_bytes

    def origin(self) -> ThreadOrigin | None:
        return None

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        self._require_open()
        if self._has_ended and not body.startswith(lines.RESUME):
            raise JournalBusy(f"{self.place}: the thread has ended just now")
        line, self._digest = chain.seal(self._digest, body)
        self._kept.data += line
        self._has_ended = body.startswith(lines.END)
        self._blob_bytes += lines.blob_bytes(line)
        if flush:
            self.flush()
        return line

    def flush(self) -> None:
        self._require_open()
        if self.flushed_bytes < len(self._kept.data):
            self.flushed_bytes = self._kept.flushed_bytes = len(self._kept.data)
            self._kept.note = None
            self.on_flush(self.flushed_bytes)

    def read(self, start: int = 0) -> bytes:
        return bytes(self._kept.data[start:])

    def reread(self) -> History:
        return recover(bytes(self._kept.data), self._kept.bundle, self._kept.thread)

    def note(self, why: str) -> Trouble:
        self._kept.note = Trouble(message=why)
        return self._kept.note

    def close(self) -> None:
        if self._is_open:
            self._kept.locked = self._is_open = False

    def _require_open(self) -> None:
        if not self._is_open:
            raise JournalBusy(f"{self.place}: the thread was left just now")
