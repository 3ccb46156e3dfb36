"""The operations of `Engine` on a store that several machines share.

Threads are driven by workers (`uncaged-workflow work`) on any machine. Threads are copied into a
directory of this process to be read (`shared/copies`), and written in the store, under their fence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uncaged_bundles.errors import (
    DamagedError,
    NotFoundError,
    RefusedError,
    UncagedError,
    UsageError,
)
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from .api import Added, Engine, ThreadPlace
from .effect_kinds import KNOWN
from .journal.journal import Journal
from .journal.lock import is_live
from .journal.origin import ThreadOrigin
from .shared.copies import ThreadCopies
from .shared.dispatch import Dispatcher, SharedStore, StoreWorker, SubmittedThreads
from .shared.documents import DocumentCopies
from .shared.following import follow_shared
from .shared.journal import left_word
from .shared.listing import SharedLists
from .shared.opening import opened_shared
from .shared.queues import QueueSettings, change_settings, reset_settings
from .shared.registry import SharedRegistry
from .shared.replica import Replica, replica
from .shared.starting import require_carried, require_files, start_shared, turn_of
from .shared.steering import owned_soon, steer_shared
from .shared.waiting import QueueState, queue_states
from .shipped import add_our_flows
from .state.observe import ThreadSummary, ThreadView, summarise
from .state.states import refusal
from .steps.accepting import accept as accept_request
from .stores.protocol import (
    ChangedMeanwhile,
    DocumentStorage,
    StoreRefused,
    ThreadEntry,
    ThreadNotes,
)
from .threads.following import Event
from .threads.starting import Chance
from .threads.steering import SteeringEvent, require
from .worker import client

if TYPE_CHECKING:
    from .door.effects import Cancel
    from .door.preparing import RunOptions
    from .proposals import Proposals
    from .state.pages import ThreadCounts, ThreadPage
    from .threads.estimate import Estimate
    from .threads.filtering import ThreadFilter
    from .threads.forking import ForkPlan
    from .threads.housekeeping import Archived, Pruned
    from .threads.logs import LogReader, StoreLogReader
    from .threads.regression import PastThread
    from .threads.transfer import ThreadFiles

MOST_UNSEEN = 1000
MOST_ESTIMATED = 1000
"""Threads that are looked at for an estimate."""


class SharedEngine(Engine):
    """Operations on one shared store. Open it with `shared_engine`."""

    is_shared = True
    registry: SharedRegistry

    def __init__(
        self,
        backend: SharedStore,
        replica: Replica,
        copies: ThreadCopies,
        chance: Chance,
        report: Callable[[str], None],
    ) -> None:
        super().__init__(replica.files, chance, replica.registry)
        self.address = backend.address
        self._backend = backend
        self._replica = replica
        self._copies = copies
        self._lists = SharedLists(backend, copies, chance)
        self._report = report
        self._dispatcher: Dispatcher | None = None
        self._dispatching = threading.Lock()
        self._documents: DocumentCopies | None = None
        self._bringing = threading.Lock()

    @property
    def documents(self) -> DocumentStorage:
        """Return the store's documents: schedules and others."""
        return self._backend.documents

    @property
    def proposals(self) -> Proposals:
        from .proposals import Proposals
        from .shared.proposals import ProposalDocuments

        files = ProposalDocuments(self._backend.documents, self._backend.address)
        return Proposals(self.store, registry=self.registry, files=files)

    def close(self) -> None:
        """Send the documents that were changed, and release the dispatcher's connections.
        Idempotent.
        """
        if self._documents is not None:
            # what sentences taught is no part of any thread: the next one teaches it again
            with suppress(UncagedError):
                self._documents.send()
            self._documents = None
        if self._dispatcher is not None:
            self._dispatcher.close()
            self._dispatcher = None

    def bundle(self, text: str) -> Bundle:
        """Load the bundle of a flow name or a hash."""
        return self.store.load_bundle(self._replica.resolve(text)[1], KNOWN)

    def add(
        self,
        name: str,
        source: bytes,
        *,
        accept: Callable[[tuple[str, ...]], bool],
        origin: str = "person",
        follows: BundleHash | Literal["any"] | None = "any",
    ) -> Added:
        """Register a bundle under a name, for all machines that share the store.

        Args: as `Engine.add`; accept: called again if another machine changed the flow meanwhile,
            so that the policy asks for something that was not accepted.
        Raises: as `Engine.add`.
        """
        accepted: set[str] = set()

        def ask(widened: tuple[str, ...]) -> bool:
            if not accepted.issuperset(widened) and accept(widened):
                accepted.update(widened)
            return accepted.issuperset(widened)

        return self.registry.again(
            lambda: super(SharedEngine, self).add(
                name, source, accept=ask, origin=origin, follows=follows
            )
        )

    def add_shipped_flows(self) -> None:
        """Add the flows of this distribution, once for each of its versions, if this user may write
        the registry.
        """
        with suppress(StoreRefused):
            add_our_flows(self.registry, self.clock_ms())

    def run(
        self,
        flow: str,
        *,
        prompt: str,
        params: Mapping[str, object] | None = None,
        options: RunOptions | None = None,
        thread: ThreadId | None = None,
        parent: Mapping[str, object] | None = None,
        launching: client.Launching | None = None,
    ) -> ThreadId:
        """Start a thread; the store has it when this returns, and a worker drives it once one is
        free. Raises: as `Engine.run`.
        """
        del launching  # its worker is one of a directory's, and ends by itself
        from .api import RunOptions

        return start_shared(
            self._replica,
            self._dispatch(),
            flow,
            prompt=prompt,
            params=params or {},
            options=options or RunOptions(),
            chance=self._chance,
            thread=thread,
            parent=parent,
        )[1]

    def threads(self, flow: str | None = None) -> list[ThreadSummary]:
        """List the threads of the store, of one flow or of one hash, those started last first."""
        from .threads.filtering import ThreadFilter, versions_of

        if flow is None:
            return list(self.page(limit=1 << 31).threads)
        name, versions = versions_of(self.registry, flow)
        return list(self.page(ThreadFilter(flow=name, versions=versions), limit=1 << 31).threads)

    def page(
        self,
        wanted: ThreadFilter | None = None,
        *,
        before: str | None = None,
        limit: int = 50,
        most_read: int | None = None,
    ) -> ThreadPage:
        """List threads (`SharedLists.page`)."""
        return self._lists.page(wanted, before=before, limit=limit, most_read=most_read)

    def first_to_last(self, flow: str) -> Iterator[ThreadSummary]:
        from .threads.filtering import ThreadFilter, versions_of

        name, versions = versions_of(self.registry, flow)
        return self._lists.first_to_last(ThreadFilter(flow=name, versions=versions))

    def thread(self, text: str) -> ThreadView:
        found = super().thread(text)
        return replace(found, summary=self._copies.with_problem(found.summary))

    def thread_log(self, text: str) -> LogReader:
        from .shared.logs import SharedThreadLog

        return SharedThreadLog(self._backend.threads, self._copies.locate(text))

    def store_log(self) -> StoreLogReader:
        from .shared.logs import SharedStoreLog

        return SharedStoreLog(self._backend, self.clock_ms())

    def has_thread(self, thread: ThreadId) -> bool:
        try:
            return self._backend.threads.locate(thread).id == thread
        except NotFoundError:
            return False

    def follow(
        self, text: str, *, after: int | None = 0, cancel: Cancel | None = None
    ) -> Iterator[Event]:
        """Yield events from the start record on, as the store has them; the last is the status.

        Args: as `Engine.follow`.
        """
        bundle, thread, path = self.store.locate_thread(text)
        data = path.read_bytes()[:after]
        begin = (data.count(b"\n"), data.rfind(b"\n") + 1)
        place = begin[1]
        if after is None:
            if is_live(path):
                yield _status("running", "", place)
            else:
                yield self._stopped(thread, place)
                return
        progress = self._backend.progress.follow(thread)
        with self._copies.followed(thread), progress as reports:
            for event in follow_shared(
                self._replica,
                bundle,
                thread,
                begin=begin,
                is_left=lambda: self._copies.is_left(thread),
                still_waits=lambda: self._report(self._lists.wait_reason(thread)),
                reports=reports,
                cancel=cancel,
            ):
                place = event.place
                yield event
        if cancel is None or not cancel.requested:
            yield self._stopped(thread, place)

    def _stopped(self, thread: ThreadId, place: int) -> Event:
        """Return the status event of a thread that no worker drives."""
        summary = summarise(self.store, *self.store.locate_thread(thread))
        return _status(summary.status, summary.message, place, steps=summary.steps)

    def summary(self, bundle: BundleHash, thread: ThreadId) -> ThreadSummary:
        del bundle
        return next(self._copies.summaries([self._copies.locate(thread)]))

    def sizes(self, threads: Sequence[tuple[BundleHash, ThreadId]]) -> dict[ThreadId, int]:
        """Return how many bytes the journals of some threads have by now. Removed ones lack."""
        entries = [ThreadEntry(bundle=bundle, id=thread) for bundle, thread in threads]
        heads = self._backend.threads.heads(entries)
        return {thread: head.size_bytes for thread, head in heads.items()}

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        """Return the workers of threads, of those that are driven or will be (`ThreadQueue`)."""
        return self._copies.pending(threads)

    def submitted(self, since_ms: int | None) -> SubmittedThreads:
        """Return the threads that were started or taken up (`ThreadQueue.submitted`)."""
        return self._backend.queue.submitted(since_ms)

    def running(self) -> list[ThreadSummary]:
        return self._lists.running()

    def unseen(self) -> list[ThreadSummary]:
        """List those of the newest `MOST_UNSEEN` threads (`Engine.unseen`)."""
        from .threads.notifications import notifications, read_seen

        seen = read_seen(self.store, self.clock_ms())
        return notifications(self._lists.newest(MOST_UNSEEN), (), seen)

    def counts(self, *, most_read: int) -> ThreadCounts:
        return self._lists.counts(most_read=most_read)

    def estimate(self, flow: str) -> Estimate:
        """Estimate a run from the flow's threads among the newest of the store."""
        from .threads.estimate import ENDED, MOST_THREADS, estimate
        from .threads.filtering import ThreadFilter

        bundle = self.registry.resolve(flow)[1]
        wanted = ThreadFilter(statuses=ENDED, flow=bundle)
        past = self.page(wanted, limit=MOST_THREADS, most_read=MOST_ESTIMATED)
        return estimate(bundle, past.threads)

    def sleepers(self) -> list[ThreadId]:
        """Return nothing: a worker keeps a thread that sleeps, and another takes it over."""
        return []

    def working(
        self,
        bundles: Collection[BundleHash] | None = None,
        threads: Collection[ThreadId] | None = None,
    ) -> list[dict[str, Any]]:
        """Describe driven and waiting threads (`SharedLists.working`)."""
        return self._lists.working(bundles, threads)

    def queues(self) -> tuple[QueueSettings, list[QueueState]]:
        """Return the settings of the queues, and the queue of each flow that has settings or
        threads.
        """
        return queue_states(self._backend)

    def workers(self) -> list[StoreWorker]:
        """Return the living workers, those that came first in front."""
        return self._backend.queue.workers()

    def change_queues(self, change: Callable[[QueueSettings], QueueSettings]) -> QueueSettings:
        """Change the settings of the queues (`queues.change_settings`)."""
        return change_settings(self._backend.documents, change)

    def reset_queues(self) -> None:
        """Replace the settings of the queues by the defaults."""
        reset_settings(self._backend.documents)

    def notify_deaths(
        self,
        threads: Iterable[ThreadSummary] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Do nothing: the workers take the threads of dead ones over."""
        del threads, environment
        return []

    def set_pinned(self, text: str, *, pinned: bool) -> ThreadId:
        entry = self._copies.locate(text)
        self._backend.threads.set_pinned(entry.bundle, entry.id, pinned=pinned)
        return entry.id

    def pinned(self) -> list[ThreadId]:
        return sorted((thread for _, thread in self._backend.threads.pinned()), reverse=True)

    def take_in(self, files: ThreadFiles, origin: ThreadOrigin) -> None:
        from .shared.importing import store_shared

        store_shared(self._replica, files, origin)

    def remove_thread(self, text: str) -> ThreadId:
        """Remove a thread that no worker drives or will drive, and leave a marker."""
        return self._remove(self._copies.locate(text))

    def remove_threads(self, texts: Sequence[str]) -> Iterator[ThreadId]:
        entries = {entry.id: entry for entry in map(self._copies.locate, texts)}
        # a parent was started before its children
        yield from map(self._remove, sorted(entries.values(), key=lambda one: one.place))

    def _remove(self, entry: ThreadEntry) -> ThreadId:
        from .shared.retention import remove_shared

        with suppress(DamagedError):  # one that cannot be read can be removed
            place = self.store.locate_thread(entry.id)
            require(summarise(self.store, *place), "remove")
        remove_shared(self._backend, entry)
        self._copies.forget(entry)
        return entry.id

    def prune(
        self,
        *,
        older_than_ms: int,
        flow: str | None = None,
        dry_run: bool = False,
        progress: Callable[[str, int], None] | None = None,
    ) -> Pruned:
        from .shared.retention import prune_shared, show_nothing

        return prune_shared(
            self._backend,
            self._dispatch,
            before_ms=self.clock_ms() - older_than_ms,
            flow=flow,
            dry_run=dry_run,
            progress=progress or show_nothing,
        )

    def archive(
        self,
        texts: Sequence[str],
        *,
        older_than_ms: int | None = None,
        flow: str | None = None,
        to: Path | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> Archived:
        """Move ended threads into a directory (`Engine.archive`)."""
        from .shared.retention import archive_shared, show_nothing
        from .stores.directory.backend import DirectoryBackend

        if to is None:
            raise UsageError(
                "threads of a shared store are moved into a directory: name one with --to DIR"
            )
        before_ms = None if older_than_ms is None else self.clock_ms() - older_than_ms
        return archive_shared(
            self._backend,
            self._dispatch,
            DirectoryBackend.open(to, create=True),
            named=[self._copies.locate(text) for text in texts],
            before_ms=before_ms,
            flow=flow,
            progress=progress or show_nothing,
        )

    def _steer(self, text: str, event: SteeringEvent) -> ThreadId:
        return steer_shared(self.store, self._copies, text, event, self.clock_ms)

    def refresh(self) -> None:
        self.registry.refresh()

    def registry_mark(self) -> object:
        found = self.registry.refresh()
        return None if found is None else found.version

    def read_sentences(self) -> None:
        self.registry.freshen()  # its copy tells which constructions are active
        with self._bringing:
            if self._documents is None:
                self.store.derived.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._documents = DocumentCopies(self._backend.documents, self.store.documents)
            self._documents.send()  # a server lives long: what the last sentence taught
            self._documents.bring()

    def keep_sentences(self) -> None:
        if self._documents is not None and (lost := self._documents.keep()):
            raise ChangedMeanwhile(
                f"another machine changed {', '.join(lost)} at the same time, and its change is kept; repeat yours if it is still wanted"
            )

    def is_driven(self, place: ThreadPlace) -> bool:
        return not self._copies.is_left(place[1])

    def wait_until_left(self, place: ThreadPlace) -> None:
        if not self._copies.is_left(place[1]):
            for _ in self.follow(place[1]):
                pass

    def journal_size(self, place: ThreadPlace) -> int:
        return self._backend.threads.head(place[0], place[1]).size_bytes

    def _past(self, flow: str) -> Iterator[PastThread]:
        from .shared.past import find_shared_past
        from .threads.filtering import versions_of

        name, versions = versions_of(self.registry, flow)
        return find_shared_past(self._backend, self._backend.queue, name, versions)

    @contextmanager
    def _journal(self, bundle: BundleHash, thread: ThreadId) -> Iterator[Journal]:
        with owned_soon(self._copies, bundle, thread) as journal:
            yield journal

    def _rouse(self, bundle: BundleHash) -> None:
        del bundle  # workers run already, or none does

    def _write_fork(self, plan: ForkPlan) -> tuple[BundleHash, ThreadId]:
        """Make the fork in this process's directory, and write it into the store."""
        require_carried(plan.new.bundle)
        require_files(plan.new.bundle, plan.start)
        bundle, thread = super()._write_fork(plan)
        path = self.store.data_path(bundle, thread)
        lines = path.read_bytes().splitlines(keepends=True)
        self._replica.send_blobs(b"".join(lines))
        entry = ThreadEntry(bundle=bundle, id=thread, place=0)
        self._backend.threads.start(entry, lines, ThreadNotes())
        self._replica.drop_journal(bundle, thread)
        return bundle, thread

    def _drive(
        self,
        bundle: BundleHash,
        thread: ThreadId,
        options: RunOptions,
        launching: client.Launching | None = None,
        **more: Any,
    ) -> None:
        """Record the request in the journal, and have a worker drive the thread."""
        del options, launching
        loaded = self._replica.bundle(bundle)
        require_carried(loaded)
        require_files(loaded, self.thread(thread).start)
        dispatcher = self._dispatch()
        queue, resume = self._backend.queue, more.get("resume")
        with self._journal(bundle, thread) as journal:
            # the worker that takes it from the queue reads the journal after this
            is_queued = queue.pending([thread]).get(thread) == ""
            if is_queued and resume is not None and left_word(journal, self.store, bundle) is None:
                raise RefusedError(refusal("running", "resume", thread))  # another's was first
            accept_request(journal, self.store, (bundle, thread), resume, self.clock_ms())
            queue.withdraw(thread)  # of the time before
            # crash here: the thread is `interrupted`, and `resume` has it driven
            if not is_queued:
                head = self._backend.threads.head(bundle, thread)
                turn = turn_of(
                    self._replica,
                    self._replica.bundle(bundle),
                    journal.blobs.expand_record(journal.history.start),
                    is_child=self._backend.threads.locate(thread).by_thread,
                    is_later=resume is not None,
                )
                dispatcher.submit(bundle, thread, turn, from_line=head.lines)

    def _dispatch(self) -> Dispatcher:
        """Return the dispatcher, which takes half a second to load: readers do without."""
        with self._dispatching:
            if self._dispatcher is None:
                self._dispatcher = self._backend.dispatcher()
            return self._dispatcher


@contextmanager
def shared_engine(
    address: str,
    home: Store,
    *,
    is_visible: bool,
    report: Callable[[str], None],
    chance: Chance | None = None,
    made: Callable[[str], None] | None = None,
) -> Iterator[SharedEngine]:
    """Open the shared store at an address.

    Args:
        home: this machine's directory, with the configuration. is_visible: as `StoreOpener`.
        made: as `opened_shared`; with it, the flows of this distribution are added, too.
        report: called once if a thread that is followed has not begun after five seconds, with the
            reason why it waits.
    Raises: as `stores.opening.open_store`.
    """
    with (
        opened_shared(address, is_visible=is_visible, made=made) as backend,
        engine_on(backend, home, report=report, chance=chance or Chance()) as engine,
    ):
        if made is not None:
            engine.add_shipped_flows()
        yield engine


@contextmanager
def engine_on(
    backend: SharedStore, home: Store, *, report: Callable[[str], None], chance: Chance
) -> Iterator[SharedEngine]:
    """Yield the engine of a shared store that is open. Args: as `shared_engine`."""

    def bring(text: str) -> tuple[BundleHash, ThreadId, Path]:
        return copies.bring(text)

    with replica(backend, home, chance, bring=bring) as in_directory:
        copies = ThreadCopies(in_directory, backend.queue)
        engine = SharedEngine(backend, in_directory, copies, chance, report)
        try:
            yield engine
        finally:
            engine.close()
            copies.close()


def _status(status: str, message: str, place: int, **more: object) -> Event:
    return Event(kind="status", body={"status": status, "message": message, **more}, place=place)
