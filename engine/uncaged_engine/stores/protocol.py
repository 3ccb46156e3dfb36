"""Protocols of a store: bundles, registry, threads, blobs, conversations and documents, wherever
they are kept.

Bytes are exact. An implementation never re-encodes what it keeps: a thread is the bytes of its
journal's lines, and two stores hold the same thread exactly if those bytes are the same. What a
method returns has been checked (a bundle and a blob are hashed again, lines are checked against
their chain), so that a store that others can write to yields no bytes of unknown origin.

All methods may be called from several threads of a process, and several processes may have the
same store open. Each method raises `StorageError` if the medium refuses: a disk, a connection, a
file's permission; `StoreRefused` if a database grants its user no such right. `DamagedError` names
the bundle, blob, document or line that is not what it must be; the rest of the store stays usable.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from uncaged_bundles.errors import RefusedError, StorageError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass

__all__ = [
    "ALL",
    "BlobStorage",
    "BundleStorage",
    "Candidates",
    "ChangedMeanwhile",
    "ConversationStorage",
    "DocumentStorage",
    "FenceRaised",
    "LineOwner",
    "LineTail",
    "RegistryStorage",
    "StoreBackend",
    "StoreLacks",
    "StoreOpener",
    "StoreRefused",
    "ThreadEnds",
    "ThreadEntry",
    "ThreadHead",
    "ThreadNotes",
    "ThreadStorage",
    "VersionedBytes",
]


class FenceRaised(RefusedError):
    """Another owner took the lines over: nothing was appended, and this owner can append no
    more.
    """


class ChangedMeanwhile(RefusedError):
    """A document has another version than the one that the caller read: nothing was written."""


class StoreRefused(RefusedError):
    """The medium lets this user not read or not write: what it refused once, it refuses for all
    items.
    """


class StoreLacks(StorageError):
    """The medium lacks something for now, such as disk space, and has written nothing: the same
    call may succeed later.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedBytes:
    """A document. version: opaque; another one after each change, the same for the same state."""

    data: bytes
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEntry:
    """A thread in the list of threads.

    place: its place in the order of starts, larger for a later start, with gaps; -1 for a thread
        that is not in the order (an imported one), which counts as older than all others. Places of
        two stores are unrelated.
    by_thread: another thread started it.
    archived: it is kept packed, and is unpacked by `ThreadStorage.open`.
    """

    bundle: BundleHash
    id: ThreadId
    place: int = -1
    by_thread: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Which threads a list is about; a store that has no index for it may give all.

    endings: threads whose last lines say one of these words (`endings.ending_of`); None: any. flow:
    those that were started under this name, or with the bundle of this hash; None: any.
    """

    endings: frozenset[str] | None = None
    flow: str | None = None


ALL = Candidates()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHead:
    """How far a thread has come.

    lines: number of whole lines. size_bytes: their size. digest: the chain's digest of the last one
        (`journal.chain`, 12 bytes).
    """

    lines: int
    size_bytes: int
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEnds:
    """Both ends of a thread: enough to list one that has ended. head: how far it has come. first:
    its start record. last: its last lines.
    """

    head: ThreadHead
    first: bytes
    last: list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadNotes:
    """Files beside a journal.

    info: the debug log, JSON Lines; may be empty. origin: the note of an imported thread
        (`journal.origin`), without which a stranger's choices would pass for the team's; None for a
        thread that was started in the store.
    """

    info: bytes = b""
    origin: bytes | None = None


class LineOwner(Protocol):
    """The one writer of a thread's or a conversation's lines, until `close`. Implementations
    inherit from it.

    A process that dies loses its ownership. Where a frozen process would keep it, another one may
    take over: it raises the fence, a number that each append compares within its transaction.
    """

    @property
    def head(self) -> ThreadHead:
        """Return the end of the lines: at opening, then after each append."""

    @property
    def fence(self) -> int:
        """Return the number of this owner, larger than that of each former one; 0 in a store whose
        locks alone keep a second writer out.
        """

    def append(self, lines: Sequence[bytes]) -> ThreadHead:
        """Append sealed lines, all or none; they are durable when this returns.

        Args:
            lines: each a JSON object with its chain and one LF (`journal.chain.seal`), at most
                `MAX_LINE_BYTES` long.
        Raises:
            FenceRaised: another owner took over.
            StoreLacks: nothing was appended, and the owner may try again.
            DamagedError: a line does not follow the chain; nothing was appended.
            JournalBusy: the owner was closed, or a journal has ended, which only a resume follows.
        """

    def close(self) -> None:
        """Give the lines up. Idempotent; raises nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


class BundleStorage(Protocol):
    """Bundles: immutable sources by their hash."""

    def put(self, source: bytes) -> BundleHash:
        """Keep a bundle's bytes for good and return their hash; durable when this returns. Bytes
        that are there already are kept.

        Raises:
            DamagedError: other bytes are kept under this hash (XXH64 does not rule that out).
        """

    def get(self, hash: BundleHash) -> bytes:
        """Return the bytes, hashed again.

        Raises:
            NotFoundError: there is no such bundle. DamagedError: its bytes have another hash.
        """

    def hashes(self) -> list[BundleHash]:
        """Return the hashes of all bundles, in order."""


class RegistryStorage(Protocol):
    """The registry: one text (`workflow.yaml`) with the flows, their versions, and the grants."""

    def read(self) -> VersionedBytes | None:
        """Return the text; None if nothing was registered yet."""

    def version(self) -> str | None:
        """Return the version of the text alone; None if nothing was registered yet."""

    def replace(self, data: bytes, *, version: str | None) -> str:
        """Replace the text and return its new version; durable when this returns.

        Args:
            version: that of the text which the caller read; None if there was none.
        Raises:
            ChangedMeanwhile: it has another version by now.
        """


class ThreadStorage(Protocol):
    """Threads: chained lines by bundle and id. The chain's seed is `journal.chain.seed(bundle,
    id)`. Ids are unique in a store.

    Line numbers are positions in the journal from 0 on, unlike the field ``seq`` of a step.
    """

    def start(self, entry: ThreadEntry, lines: Iterable[bytes], notes: ThreadNotes) -> None:
        """Make a thread with its first lines, one at least: whole or not at all, durable when this
        returns.

        Args:
            entry: its `place` is only looked at for its sign: a thread with -1 does not enter the
                order of starts, each other one becomes its last.
            lines: may be an iterator over many, which is consumed once.
        Raises:
            RefusedError: the store has a thread with this id.
            DamagedError: a line does not follow the chain, or there is none.
        """

    def open(self, bundle: BundleHash, thread: ThreadId, *, take_over: bool = False) -> LineOwner:
        """Become the writer of a thread; an archived one is unpacked.

        Args:
            take_over: raise the fence even if an owner lives. A store whose locks end with their
                owner's process has no such need and ignores it.
        Raises:
            NotFoundError: there is no such thread. JournalBusy: an owner lives.
            DamagedError: its lines do not fit their chain.
        """

    def read(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, limit: int = 0
    ) -> list[bytes]:
        """Return the durable lines from *from_line* on, without the ownership; none if there are no
        more.

        Args:
            limit: so many at most; 0 for all. A store may return fewer lines than there are, but
                returns one at least if there is one.
        Raises:
            NotFoundError: there is no such thread. DamagedError: a returned line does not fit its
                chain. Lines before *from_line* need not be checked for that.
        """

    def read_damaged(self, bundle: BundleHash, thread: ThreadId) -> bytes:
        """Return all lines of a thread as they are, also those that do not fit the chain, so that
        people can look at the whole ones. A line may be cut after `MAX_LINE_BYTES`.

        Raises:
            NotFoundError: there is no such thread.
        """

    def follow(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, timeout_s: float
    ) -> Generator[list[bytes]]:
        """Yield the lines from *from_line* on, each once and in order, as they become durable.

        An empty list follows each *timeout_s* without a line, so that the caller can look at its
        own affairs. The iteration does not end by itself; close the generator.

        Raises: as `read`, in the iteration.
        """

    def head(self, bundle: BundleHash, thread: ThreadId) -> ThreadHead:
        """Return how far a thread has come. Raises: as `read`."""

    def heads(self, entries: Collection[ThreadEntry]) -> dict[ThreadId, ThreadHead]:
        """Return how far several threads have come, as the store notes it: not compared with their
        lines. Threads that are not there are left out.
        """

    def ends(self, entries: Collection[ThreadEntry], *, limit: int) -> dict[ThreadId, ThreadEnds]:
        """Return the first line of several threads and the last *limit* lines, or all if there are
        no more; where the store can, together and without a look at those between. Threads that
        are not there or are damaged are left out.
        """

    def notes(self, bundle: BundleHash, thread: ThreadId) -> ThreadNotes:
        """Return the files beside a journal.

        Raises:
            NotFoundError: there is no such thread.
        """

    def replace_info(self, bundle: BundleHash, thread: ThreadId, info: bytes) -> None:
        """Replace a thread's debug log.

        Raises:
            NotFoundError: there is no such thread.
        """

    def archive(self, bundle: BundleHash, thread: ThreadId) -> None:
        """Pack a thread; nothing happens if it is packed.

        Raises:
            NotFoundError: there is no such thread. JournalBusy: it has an owner.
        """

    def locate(self, prefix: str) -> ThreadEntry:
        """Return the thread whose id begins with *prefix*, in any case.

        Raises:
            UsageError: empty, too long, or the start of several ids; some are listed.
            NotFoundError: no id begins with it.
        """

    def page(
        self,
        *,
        after: ThreadEntry | None = None,
        limit: int,
        newest_first: bool = False,
        among: Candidates = ALL,
    ) -> list[ThreadEntry]:
        """Return up to *limit* threads, ordered by place, then by id; the next ones after *after*,
        the last entry of the former page. The cost does not depend on the lengths of the threads.

        Args:
            newest_first: in the opposite order. among: leave out others, if that is cheap: the
                caller looks at each thread all the same.
        """

    def removed(self) -> list[tuple[BundleHash, ThreadId]]:
        """Return the threads that have a marker of removal, in order of bundle and id."""

    def is_removed(self, bundle: BundleHash | None, thread: ThreadId) -> bool:
        """Tell whether a thread has a marker of removal. It has one once its lines are gone.

        Args:
            bundle: None: of whichever bundle that the store has.
        """

    def mark_removed(self, bundle: BundleHash, thread: ThreadId) -> None:
        """Leave a durable marker that a thread was removed; its lines, if any, stay."""

    def pinned(self) -> list[tuple[BundleHash, ThreadId]]:
        """Return the threads that a person keeps from removal, in order of bundle and id."""

    def set_pinned(self, bundle: BundleHash, thread: ThreadId, *, pinned: bool) -> None:
        """Keep a thread from removal, or no longer; durable when this returns.

        Raises:
            NotFoundError: there is no such thread, to be pinned.
        """


class BlobStorage(Protocol):
    """Contents that are too large for a line, by their hash (`journal.blobs.blob_hash`)."""

    def put(self, data: bytes) -> str:
        """Keep *data* and return its hash; durable when this returns."""

    def get(self, name: str) -> bytes:
        """Return the bytes with this hash, hashed again.

        Raises:
            DamagedError: they are missing, have another hash, or *name* is no hash.
        """

    def names(self) -> Iterator[str]:
        """Yield the hashes of all blobs, in order."""


class LineTail(Protocol):
    """Position of one reader in a conversation's lines, which it reads as they become durable."""

    def has_more(self) -> bool:
        """Tell, without waiting, whether `read` may find a line."""

    def read(self, *, limit: int) -> list[bytes]:
        """Return the next lines, in order, at most *limit*; none if there are no more at present.

        Raises:
            NotFoundError: the conversation was removed. StorageError: the store is away; the next
                read goes on from the same place.
        """

    def close(self) -> None:
        """End the reading. Idempotent."""


class ConversationStorage(Protocol):
    """Conversations: chained lines by name, which is spelled like a thread id. The chain's seed is
    `journal.chain.conversation_seed(name)`."""

    def names(self) -> list[str]:
        """Return the names of all conversations, in order."""

    def start(self, name: str, lines: Iterable[bytes]) -> None:
        """Make a conversation with its first lines, one at least: whole or not at all.

        Raises:
            RefusedError: there is one of this name. UsageError: *name* is none.
            DamagedError: a line does not follow the chain, or there is none.
        """

    def read(self, name: str, *, from_line: int = 0) -> list[bytes]:
        """Return the lines from *from_line* on. Raises: as `ThreadStorage.read`."""

    def tail(self, name: str, *, from_line: int | None) -> LineTail:
        """Return a reader of the lines from *from_line* on; None: of those that come from now on.

        Raises:
            NotFoundError: there is no such conversation.
        """

    def holder(self, name: str) -> str:
        """Return which process is the writer of a conversation, in words for a person; empty if
        none is.
        """

    def open(self, name: str, *, take_over: bool = False) -> LineOwner:
        """Become the writer of a conversation. Raises: as `ThreadStorage.open`."""

    def remove(self, name: str) -> None:
        """Remove a conversation for good.

        Raises:
            NotFoundError: there is no such conversation. JournalBusy: an owner lives.
        """


class DocumentStorage(Protocol):
    """The other data that a team shares: small files by a relative name, such as
    ``schedules/nightly.json``. `stores.names.is_document` tells which names there are.
    """

    def names(self) -> list[str]:
        """Return the names of all documents, in order."""

    def read(self, name: str) -> VersionedBytes | None:
        """Return a document; None if there is none of this name.

        Raises:
            UsageError: *name* is no document's name.
        """

    def replace(self, name: str, data: bytes, *, version: str | None) -> str:
        """Write a document and return its new version; durable when this returns.

        Args:
            version: that of the document which the caller read; None if there was none.
        Raises:
            ChangedMeanwhile: it has another version by now. UsageError: as `read`.
        """

    def remove(self, name: str, *, version: str) -> None:
        """Remove a document for good.

        Args:
            version: that of the document which the caller read.
        Raises:
            ChangedMeanwhile: it has another version by now, or is gone. UsageError: as `read`.
        """


class StoreBackend(Protocol):
    """An open store."""

    @property
    def address(self) -> str:
        """Return where the store is, for messages: without a password."""

    @property
    def bundles(self) -> BundleStorage: ...

    @property
    def registry(self) -> RegistryStorage: ...

    @property
    def threads(self) -> ThreadStorage: ...

    @property
    def blobs(self) -> BlobStorage: ...

    @property
    def conversations(self) -> ConversationStorage: ...

    @property
    def documents(self) -> DocumentStorage: ...

    def close(self) -> None:
        """Release all connections, with the ownerships that they hold. Idempotent."""


class StoreOpener(Protocol):
    """Opens the stores of one kind of address. Entry points of the group
    ``uncaged_workflow.stores`` are such functions, named like the scheme of the address.
    """

    def __call__(self, address: str, *, create: bool, is_visible: bool) -> StoreBackend:
        """Open a store.

        Args:
            address: a URL whose scheme is the entry point's name.
            create: make the store if there is none, and bring an older one to this version.
                Otherwise nothing is written.
            is_visible: the address was an argument of a command, which other users of the machine
                can read: one with a password is refused.
        Raises:
            UsageError: the address cannot be read or has a password that others can read.
            NotFoundError: there is no store, and *create* is false.
            RefusedError: the store was made by a newer version, or this user lacks the rights.
            EnvironmentLacks: a library is not installed. StorageError: it cannot be reached.
        """
