"""Removal of a shared store's threads: the rules.

Rule 1: only a thread that has ended, or that a person names, is removed; never one that a worker
drives or will drive, or that another command writes to.
Rule 2: a child whose parent may still go on is kept: without it, the parent would start it again.
Rule 3: a pinned thread is kept, until a person releases it.
Rule 4: a removed thread leaves a marker, so that no copy brings it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId, is_thread_id

from ..state.observe import start_in
from ..stores.copying import ThreadCopy
from ..stores.endings import OPEN, UNSUCCESSFUL
from ..stores.protocol import StoreBackend, ThreadEntry
from ..stores.reading import noted_problem
from ..threads.housekeeping import Archived, Pruned
from .dispatch import Dispatcher, EndedThread, SharedStore

REMOVABLE = ("completed", UNSUCCESSFUL, "failed", "killed")
"""Endings of threads that age alone removes. One that reached a limit is resumed with a higher
one.
"""
BATCH = 100
BATCH_LINES = 10_000
"""A transaction removes so many threads, and no further one after so many lines."""

Progress = Callable[[str, int], None]


def show_nothing(_kind: str, _count: int) -> None:
    """Show no progress."""


def old_threads(
    store: SharedStore, *, before_ms: int, flow: str | None
) -> Iterator[Sequence[EndedThread]]:
    """Yield batches of the threads that ended before a time, and that no worker drives."""
    after: EndedThread | None = None
    while page := store.retention.ended(
        before_ms=before_ms, endings=REMOVABLE, flow=flow, after=after, limit=BATCH
    ):
        after = page[-1]
        pending = store.queue.pending([one.entry.id for one in page])
        batch: list[EndedThread] = []
        for one in page:
            if one.entry.id in pending:
                continue
            if batch and sum(each.lines for each in batch) + one.lines > BATCH_LINES:
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch


class Descents:
    """Parents of threads, which keep their children while they may go on."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    def free(
        self, threads: Sequence[EndedThread], gone: Collection[ThreadId]
    ) -> tuple[list[EndedThread], list[EndedThread]]:
        """Return those of some threads that no parent needs, and the others. gone: what is removed
        together with them.
        """
        parents = {one.entry.id: self.parent(one.entry) for one in threads}
        wanted = {parent for parent in parents.values() if parent is not None}
        endings = self._store.retention.endings(wanted - set(gone))
        needing = {parent for parent, ending in endings.items() if _goes_on(ending)}
        free: list[EndedThread] = []
        kept: list[EndedThread] = []
        for one in threads:
            (kept if parents[one.entry.id] in needing else free).append(one)
        return free, kept

    def require_free(self, entry: ThreadEntry, gone: Collection[ThreadId] = ()) -> None:
        """Refuse a thread that its parent needs. gone: as `free`."""
        parent = self.parent(entry)
        if parent is None or parent in gone:
            return
        ending = self._store.retention.endings([parent]).get(parent)
        if ending is not None and _goes_on(ending):
            raise RefusedError(
                f"thread {entry.id} is kept: its parent {parent} may go on and would start it again;"
                f" `thread rm {parent}` first"
            )

    def parent(self, entry: ThreadEntry) -> ThreadId | None:
        """Return the thread that started a thread; None if a person did, or its start cannot be
        read.
        """
        if not entry.by_thread or entry.place < 0:
            return None
        start: Mapping[str, Any] = start_in(
            self._store.threads.read(entry.bundle, entry.id, limit=1)[0]
        )
        parent = start.get("parent")
        named = str(parent.get("threadId")) if isinstance(parent, Mapping) else ""
        if "forkFrom" in start or not is_thread_id(named):
            return None  # a fork of a child is no child: its id is not the derived one
        return ThreadId(named)


class OldThreads:
    """The threads that ended before a time, on their way out of a store.

    take: removes threads, and returns those that it removed; it may do more with them before.
    """

    def __init__(
        self,
        store: SharedStore,
        take: Callable[[Sequence[EndedThread]], Collection[ThreadId]],
        progress: Progress,
    ) -> None:
        self.gone: dict[ThreadId, None] = {}
        self.kept: list[EndedThread] = []
        self.pinned: list[ThreadId] = []
        self.freed_bytes = 0
        self._descents = Descents(store)
        self._store = store
        self._take = take
        self._progress = progress

    def take_all(self, *, before_ms: int, flow: str | None) -> None:
        """Take all threads, of a flow or of all, that no parent needs."""
        pinned = {thread for _, thread in self._store.threads.pinned()}
        for batch in old_threads(self._store, before_ms=before_ms, flow=flow):
            self.pinned += [one.entry.id for one in batch if one.entry.id in pinned]
            self._take_free([one for one in batch if one.entry.id not in pinned])
        # a parent may have ended, and gone, after its child
        while self.kept:
            waiting, self.kept = self.kept, []
            for at in range(0, len(waiting), BATCH):
                self._take_free(waiting[at : at + BATCH])
            if len(self.kept) == len(waiting):
                break

    def take_named(self, entry: ThreadEntry) -> None:
        """Take one thread.

        Raises:
            RefusedError: it has not ended, its parent needs it, it is pinned, or in use.
        """
        ending = self._store.retention.endings([entry.id]).get(entry.id, OPEN)
        if ending == OPEN:
            raise RefusedError(f"thread {entry.id} has not ended: only an ended thread is archived")
        require_unpinned(self._store, entry)
        require_left(self._store, entry)
        self._descents.require_free(entry, self.gone)
        head = self._store.threads.head(entry.bundle, entry.id)
        one = EndedThread(
            entry=entry, flow="", ended_ms=0, lines=head.lines, size_bytes=head.size_bytes
        )
        if self._take([one]):
            self.gone[entry.id] = None
            self.freed_bytes += head.size_bytes

    def _take_free(self, batch: Sequence[EndedThread]) -> None:
        free, needed = self._descents.free(batch, self.gone)
        self.kept += needed
        sizes = {one.entry.id: one.size_bytes for one in free}
        for thread in self._take(free) if free else ():
            self.gone[thread] = None
            self.freed_bytes += sizes[thread]
        self._progress("threads", len(self.gone))


def prune_shared(
    store: SharedStore,
    dispatcher: Callable[[], Dispatcher],
    *,
    before_ms: int,
    flow: str | None,
    dry_run: bool,
    progress: Progress,
) -> Pruned:
    """Remove the threads that ended before a time, then what the dispatcher keeps of threads that
    it finished before then, and blobs that no thread names.

    Args:
        dispatcher: called once something is removed. flow: only its threads.
    """

    def take(threads: Sequence[EndedThread]) -> Collection[ThreadId]:
        if dry_run:
            return [one.entry.id for one in threads]
        return store.retention.remove({one.entry.id: one.lines for one in threads})

    old = OldThreads(store, take, progress)
    old.take_all(before_ms=before_ms, flow=flow)
    freed = old.freed_bytes
    if not dry_run:
        freed += swept(store, dispatcher(), before_ms=before_ms, progress=progress)
    kept = tuple(one.entry.id for one in old.kept)
    return Pruned(threads=tuple(old.gone), freed_bytes=freed, kept=kept, pinned=tuple(old.pinned))


def archive_shared(
    store: SharedStore,
    dispatcher: Callable[[], Dispatcher],
    target: StoreBackend,
    *,
    named: Sequence[ThreadEntry],
    before_ms: int | None,
    flow: str | None,
    progress: Progress,
) -> Archived:
    """Move ended threads into a store in a directory, packed there, and remove them here.

    Args:
        named: these threads. before_ms: those that ended before this time, instead; flow: of it.
    Raises:
        RefusedError: a named thread has not ended, or is kept. Those before it were moved.
    """
    copy = ThreadCopy(store, target)
    problems = copy.registry()

    def take(threads: Sequence[EndedThread]) -> Collection[ThreadId]:
        moved: dict[ThreadId, int] = {}
        for one in threads:
            with noted_problem("threads", problems):
                head = copy.thread(one.entry)
                target.threads.archive(one.entry.bundle, one.entry.id)
                moved[one.entry.id] = head.lines
        # crash here: the threads are in both stores; the next run finds them there
        return store.retention.remove(moved)

    old = OldThreads(store, take, progress)
    if before_ms is not None:
        old.take_all(before_ms=before_ms, flow=flow)
    for entry in named:
        old.take_named(entry)
    if before_ms is not None:
        swept(store, dispatcher(), before_ms=before_ms, progress=progress)
    return Archived(
        threads=tuple(old.gone),
        saved_bytes=old.freed_bytes,
        kept=tuple(one.entry.id for one in old.kept),
        problems=tuple(problems),
    )


def swept(store: SharedStore, dispatcher: Dispatcher, *, before_ms: int, progress: Progress) -> int:
    """Remove what belongs to no thread any more; return the bytes of blobs."""
    dispatcher.forget(before_ms=before_ms, progress=lambda count: progress("records", count))
    return store.retention.sweep(progress=lambda count: progress("threads looked at", count))


def remove_shared(store: SharedStore, entry: ThreadEntry) -> None:
    """Remove a thread that a person names and that does not run.

    Raises:
        RefusedError: its parent needs it, it is pinned, or in use.
    """
    require_unpinned(store, entry)
    Descents(store).require_free(entry)
    require_left(store, entry)
    lines = store.threads.head(entry.bundle, entry.id).lines
    if not store.retention.remove({entry.id: lines}):
        raise RefusedError(f"thread {entry.id} was taken up just now; look at it again")


def require_unpinned(store: SharedStore, entry: ThreadEntry) -> None:
    """Refuse a pinned thread."""
    if (entry.bundle, entry.id) in store.threads.pinned():
        raise RefusedError(
            f"thread {entry.id} is pinned; `thread pin --off {entry.id}` releases it"
        )


def require_left(store: SharedStore, entry: ThreadEntry) -> None:
    """Refuse a thread that a worker has or will take.

    Raises:
        RefusedError: it has, or it will: it ended while it waited for one.
    """
    worker = store.queue.pending([entry.id]).get(entry.id)
    if worker == "":
        raise RefusedError(
            f"thread {entry.id} is in the queue still: the next worker (`uncaged-workflow work`) takes it off there"
        )
    if worker is not None:
        raise RefusedError(f"thread {entry.id} is with {worker}; try again once that has left it")


def _goes_on(ending: str) -> bool:
    return ending not in ("completed", UNSUCCESSFUL, "failed")
