"""Library interface of the engine: open a store, add and run flows, follow, steer and fork threads.

engine = Engine.open()
engine.add("hello", Path("hello.py").read_bytes(), accept=lambda widened: True)
thread = engine.run("hello", prompt="world")
for event in engine.follow(thread):
    print(event.kind, event.body)
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.names import FlowName, new_flow_name
from uncaged_bundles.policy import widening
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle

from .door.preparing import RunOptions
from .effect_kinds import KNOWN
from .journal import archive, lines, lock
from .journal.file import JournalFile, create
from .journal.journal import Journal
from .journal.origin import ThreadOrigin, unbound
from .sandbox.mechanism import choose
from .settings.config import Config
from .settings.loading import load
from .shipped import add_shipped_flows
from .state import states
from .state.observe import ThreadSummary, ThreadView, summarise, summarise_thread, view
from .threads.answering import check_answer, question_number
from .threads.binding import Accept, ThreadBinding, bind_here
from .threads.cutting import Cut, Replacement
from .threads.following import Event, follow, wait_until_left
from .threads.resuming import is_due, resume_fields
from .threads.starting import ENTROPY_BYTES, Chance, granted_bundle, new_start, start_line
from .threads.steering import SteeringEvent, require, require_still, steer
from .threads.tails import settle
from .worker import client

if TYPE_CHECKING:  # `run` does without, and half of the command's start would go into them
    from .door.effects import Cancel
    from .door.notifications import Notification
    from .proposals import Proposals
    from .state.pages import ThreadCounts, ThreadPage
    from .threads.estimate import Estimate
    from .threads.filtering import ThreadFilter
    from .threads.forking import ForkPlan
    from .threads.housekeeping import Archived, Pruned
    from .threads.logs import LogReader, StoreLogReader
    from .threads.regression import PastThread, ReplayCheck
    from .threads.transfer import ThreadFiles
    from .threads.trial import Decisions, TrialResult
    from .threads.verify import Verification

ThreadPlace = tuple[BundleHash, ThreadId, Path]
"""Bundle, id and journal of a thread."""
_UNBOUNDED = 1 << 31
"""Limit of a page that has all threads that fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Result of `Engine.add`. changed: False if the name pointed to the same bytes already.
    widened: what the policy allows and the former version's did not.
    """

    name: FlowName
    hash: BundleHash
    changed: bool
    widened: tuple[str, ...]


class Engine:
    """Operations on one store."""

    is_shared = False
    """Whether several machines share the store (`shared_engine`)."""
    address: str | None = None
    """Address of the shared store."""

    def __init__(
        self, store: Store, chance: Chance | None = None, registry: Registry | None = None
    ) -> None:
        self.store = store
        self.registry = registry or Registry(store)
        self.problems: tuple[str, ...] = ()
        """Flows of template packages that `open` could not add."""
        self._chance = chance or Chance()

    @classmethod
    def open(cls, root: Path | None = None, chance: Chance | None = None) -> Engine:
        """Open or create a store, and add the flows of template packages that were installed
        since.
        """
        engine = cls(Store.open(root), chance)
        engine.problems = add_shipped_flows(
            engine.store, engine.registry, engine._chance.clock_ms()
        )
        return engine

    @property
    def config(self) -> Config:
        """The store's settings, as ``config.yaml`` has them now."""
        return load(self.store)

    @property
    def proposals(self) -> Proposals:
        """The proposed versions of flows, and decisions about them."""
        from .proposals import Proposals

        return Proposals(self.store)

    def clock_ms(self) -> int:
        """Return the time as threads record it."""
        return self._chance.clock_ms()

    # Flows

    def add(
        self,
        name: str,
        source: bytes,
        *,
        accept: Callable[[tuple[str, ...]], bool],
        origin: str = "person",
        follows: BundleHash | Literal["any"] | None = "any",
    ) -> Added:
        """Register a bundle under a name.

        Args:
            accept: called with one sentence for each thing that the policy newly allows, if there
                is any; returns whether a person accepts them.
            follows: the version of the flow that this one was made of; None: there is no such flow.
        Raises:
            BundleError: the bundle is not valid. RefusedError: not accepted, or the flow has
                another version by now; nothing was stored.
        """
        if follows != "any":
            self._require_version(name, follows)
        flow, bundle, widened = self._version(name, source)
        if widened and not accept(widened):
            raise RefusedError(
                f"{flow} was not added: its policy asks for more, which was not accepted; read the list above, then add it with --accept"
            )
        changed = self.registry.add(
            flow, bundle, now_ms=self._chance.clock_ms(), source=origin, granted=True
        )
        return Added(name=flow, hash=bundle.hash, changed=changed, widened=widened)

    def widened_by(self, name: str, source: bytes) -> tuple[str, ...]:
        """Return one sentence for each thing that `add` would ask to accept.

        Raises:
            BundleError: the bundle is not valid.
        """
        return self._version(name, source)[2]

    def _require_version(self, name: str, follows: BundleHash | None) -> None:
        """Refuse a change that was made of another version than the flow's present one."""
        present = self.registry.flow(name)
        if present is None and follows is not None:
            raise RefusedError(f"the flow {name!r} was removed meanwhile; nothing was changed")
        if present is not None and follows is None:
            raise RefusedError(f"a flow {name!r} already exists; choose another name with --name")
        if present is not None and present.hash != follows:
            raise RefusedError(
                f"the flow {name!r} was changed meanwhile and is {present.hash} now, not {follows}; repeat your change on it"
            )

    def _version(self, name: str, source: bytes) -> tuple[FlowName, Bundle, tuple[str, ...]]:
        """Return a new version of a flow, and what its policy newly allows."""
        former = self.registry.flow(name)
        flow = new_flow_name(name) if former is None else former.name
        # what is hashed is what is stored
        bundle = read_bundle(source.removeprefix(BOM_UTF8), KNOWN, check_schemas=True)
        if self.registry.granted(bundle):
            return flow, bundle, ()
        before = (
            self.store.load_bundle(former.hash, KNOWN).descriptor.policy
            if former is not None
            else None
        )
        return flow, bundle, widening(before, bundle.descriptor.policy, KNOWN)

    def bundle(self, text: str) -> Bundle:
        """Load the bundle of a flow name or a hash."""
        return self.store.load_bundle(self.registry.resolve(text)[1], KNOWN)

    def trial(
        self,
        bundle: Bundle,
        *,
        prompt: str = "",
        params: Mapping[str, object] | None = None,
        directory: Path | None = None,
        options: RunOptions | None = None,
        decisions: Decisions | None = None,
        cancel: Cancel | None = None,
    ) -> TrialResult:
        """Run a bundle once without a thread in the store, under its own policy, which a person
        need not have granted: ask first.

        Effects that are not harmless (`Handler.is_harmless`) are not performed unless *decisions*
        allow it; they get the outcome that *decisions* know, or end the trial. Flows that it calls
        are tried in the same way, under the policies that a person granted them.

        Args:
            directory: where scripts run, instead of that of *options*; it should hold nothing that
                must not change. None: a fresh one, which is removed afterwards. cancel: ends it as
                ``killed``.
        Raises:
            UncagedError: it cannot be started. ReplayError and BundleError of the bundle are the
                ending ``failed``.
        """
        from .threads.trial import Decisions, run_trial

        return run_trial(
            self.store,
            self.config,
            bundle,
            prompt=prompt,
            params=params or {},
            directory=directory,
            options=options or RunOptions(),
            decisions=decisions or Decisions(),
            cancel=cancel,
            chance=self._chance,
        )

    def estimate(self, flow: str) -> Estimate:
        """Estimate a run of the flow from the newest ended threads of its present version."""
        from .threads.estimate import ENDED, MOST_THREADS, estimate
        from .threads.filtering import ThreadFilter

        bundle = self.registry.resolve(flow)[1]
        past = self.page(ThreadFilter(statuses=ENDED, flow=bundle), limit=MOST_THREADS)
        return estimate(bundle, past.threads)

    # Threads

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
        """Start a thread; it exists and has a worker when this returns.

        Args:
            launching: the flow's worker, if it is starting already (`worker.client.rouse_flow`).
            thread, parent: for a child thread: its id, and its parent's
                ``{"threadId", "seq", "depth"}``.
        Raises:
            UncagedError: the thread cannot start, and nothing was written; or it was written, and
                its worker cannot start.
        """
        chosen = options or RunOptions()
        name, bundle_hash = self.registry.resolve(flow)
        # it starts while we check
        with launching or client.rouse(self.store, bundle_hash) or nullcontext() as worker:
            bundle = granted_bundle(self.store, self.registry, bundle_hash)
            thread, start = new_start(
                store=self.store,
                thread=thread,
                parent=parent,
                config=self.config,
                bundle=bundle,
                name=name or bundle.descriptor.name,
                prompt=prompt,
                params=params or {},
                options=chosen,
                chance=self._chance,
            )
            line = start_line(self.store, start, self._chance.clock_ms())
            self.store.note_start(thread, by_thread=parent is not None)
            create(self.store.data_path(bundle.hash, thread), line, bundle.hash, thread)
            # crash here: the thread is `interrupted`, and `resume` starts it
            self._drive(bundle.hash, thread, chosen, launching=worker)
        return thread

    def threads(self, flow: str | None = None) -> list[ThreadSummary]:
        """List the threads of the store, of one flow or of one hash, those started last first.
        Unreadable ones are listed, too.
        """
        from .threads.listing import list_threads

        summaries = list_threads(self.store)
        if flow is not None:
            name, bundle_hash = self.registry.resolve(flow)
            named = self.registry.flow(name) if name else None
            versions = {version.hash for version in named.versions} if named else set()
            summaries = (
                of_flow(summaries, name, versions)
                if name
                else [one for one in summaries if one.hash == bundle_hash]
            )
        return self._last_first(summaries)

    def first_to_last(self, flow: str) -> Iterator[ThreadSummary]:
        """Yield the threads that were started under a flow's name, those started first first. A
        shared store's copy of one is removed before the next one.
        """
        yield from reversed(of_flow(self.threads(), flow))

    def page(
        self,
        wanted: ThreadFilter | None = None,
        *,
        before: str | None = None,
        limit: int = 50,
        most_read: int | None = None,
    ) -> ThreadPage:
        """List the first *limit* threads that fit, those started last first, at the cost of these
        threads alone.

        Args:
            before: from the page before. most_read: after so many journals that the index does not
                know yet, the page ends early.
        Raises:
            UsageError: *before* is no place in a list.
        """
        from .threads.filtering import ThreadFilter
        from .threads.paging import page

        return page(
            self.store,
            wanted or ThreadFilter(),
            before=before,
            limit=limit,
            now_ms=self.clock_ms(),
            most_read=most_read,
        )

    def _all_of(self, *statuses: states.State) -> Sequence[ThreadSummary]:
        """List all threads with one of these statuses, by the index."""
        from .threads.filtering import ThreadFilter

        return self.page(ThreadFilter(statuses=statuses), limit=_UNBOUNDED).threads

    def _last_first(self, summaries: Iterable[ThreadSummary]) -> list[ThreadSummary]:
        order = self.store.start_order()
        return sorted(
            summaries, key=lambda one: (order.get(one.thread_id, -1), one.thread_id), reverse=True
        )

    def thread(self, text: str) -> ThreadView:
        """Read one thread in full; *text* is an id, a unique prefix of one, or ``latest``."""
        return view(self.store, *self.store.locate_thread(text))

    def thread_log(self, text: str) -> LogReader:
        """Return a reader of the debug log of a thread. *text*: as for `thread`."""
        from .threads.logs import ThreadLog

        bundle, thread, _ = self.store.locate_thread(text)
        return ThreadLog(self.store, bundle, thread)

    def store_log(self) -> StoreLogReader:
        """Return a reader of the debug logs of all threads."""
        from .threads.logs import StoreLog

        return StoreLog(self.store, self.clock_ms())

    def has_thread(self, thread: ThreadId) -> bool:
        """Tell whether the store has a thread, plain or archived."""
        return self.store.journal_of(thread) is not None

    def follow(
        self, text: str, *, after: int | None = 0, cancel: Cancel | None = None
    ) -> Iterator[Event]:
        """Yield events from the start record on, as they reach the disk; the last is the status.

        Args:
            after: the place of the last event that is known already; None: from now on. cancel:
                ends the stream from another thread of execution.
        """
        place = self.store.locate_thread(text)
        return follow(self.store, *place, after=after, cancel=cancel)

    def pause(self, text: str) -> ThreadId:
        """Stop a thread before its next effect; on disk when this returns."""
        return self._steer(text, "pause")

    def kill(self, text: str) -> ThreadId:
        """End a thread; the effect in flight is cancelled and its processes are ended."""
        return self._steer(text, "kill")

    def _steer(self, text: str, event: SteeringEvent) -> ThreadId:
        return steer(self.store, text, event, self._chance.clock_ms)

    def resume(
        self,
        text: str,
        *,
        redo: bool = False,
        skip: bool = False,
        note: str | None = None,
        options: RunOptions | None = None,
        accept: Accept | None = None,
    ) -> ThreadId:
        """Continue a thread that is paused, interrupted, killed, at a limit or unknown.

        Lines that a failed flush left in doubt are brought to disk first; the thread may have ended
        with them.

        Args:
            redo, skip: the decision about an effect that may have been performed and has no
                outcome. note: added to the next role's prompt.
            options: its limits replace the thread's; its directory and environment are those of
                child processes. Its agents, workspace, links and test command bind an imported
                thread.
            accept: called with one sentence for each thing that an imported thread would use here;
                returns whether a person accepts them.
        Raises:
            RefusedError: the thread's state forbids it, or it is imported and was not accepted; the
                message has the next step.
        """
        if redo and skip:
            raise UsageError("--redo and --skip exclude each other")
        bundle_hash, thread, path = self.store.locate_thread(text)
        settled = settle(self.store, path, bundle_hash, thread)
        found = view(self.store, bundle_hash, thread, path)
        if settled and found.end is not None and not states.allowed(found.summary.status, "resume"):
            return thread  # it has ended; only its last lines were in doubt
        chosen = options or RunOptions()
        fields = resume_fields(found, redo=redo, skip=skip, note=note, limits=chosen.recorded())
        if not (found.unbound and found.summary.status == "waiting"):
            require(found.summary, "resume")
        bundle = granted_bundle(self.store, self.registry, bundle_hash)
        if chosen.binds and not found.unbound:
            raise UsageError(
                f"thread {thread} is bound already: agents, their options, workspace and test command are changed by a fork, not `resume`"
            )
        if found.unbound:
            binding = self._bind((bundle_hash, thread, path), bundle, thread, chosen, accept)
            binding.secure()
            fields = {**fields, "binding": binding.fields}
        if archive.is_archived(path):
            archive.restore(path)
        if found.summary.status == "waiting":
            self.pause(thread)  # resumed, the bundle asks its question again
        self._drive(bundle_hash, thread, chosen, resume=fields)
        return thread

    def _bind(
        self,
        source: ThreadPlace,
        bundle: Bundle,
        thread: ThreadId,
        options: RunOptions,
        accept: Accept | None,
        *,
        cut: Cut | None = None,
    ) -> ThreadBinding:
        """Return the binding of an imported thread to this machine. thread: itself, or its fork."""
        return bind_here(
            self.store,
            self.config,
            bundle,
            source,
            thread=thread,
            cut=cut,
            options=options,
            accept=accept,
            now_ms=self._chance.clock_ms(),
        )

    def sleepers(self) -> list[ThreadId]:
        """Return the interrupted threads whose last effect is a sleep that is over by now, without
        those that a copy of a store brought and that were not resumed here.
        """
        now = self._chance.clock_ms()
        interrupted = [self.thread(one.thread_id) for one in self._all_of("interrupted")]
        return [
            one.summary.thread_id
            for one in interrupted
            if not (one.unbound or one.copied) and is_due(one.records, now)
        ]

    def notify_deaths(
        self,
        threads: Iterable[ThreadSummary] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Notify a person of interrupted and unknown threads, each once, as config.yaml says;
        return a sentence for each notification that was not delivered.

        Args:
            threads: None for all of the store. environment: sources of secrets, and variables of a
                command; None for this process's.
        """
        config = self.config
        if config.notify is None:
            return []
        found = self._all_of("interrupted", "unknown") if threads is None else threads
        dead = [one for one in found if one.status in ("interrupted", "unknown")]
        if not dead:
            return []  # without the imports below
        from .threads.deaths import notify_deaths

        return notify_deaths(
            self.store,
            config,
            config.notify,
            dead,
            environment=os.environ if environment is None else environment,
            clock_ms=self._chance.clock_ms,
        )

    def notify(
        self, notification: Notification, environment: Mapping[str, str] | None = None
    ) -> None:
        """Send a notification, whatever its event is, and wait for its delivery.

        Raises:
            UsageError: config.yaml does not say how. UncagedError: it was not delivered.
        """
        from .notify.delivery import deliver

        config = self.config
        if config.notify is None:
            raise UsageError(
                f"{self.store.config_path} has no section `notify`; write for example"
                " notify: {command: [notify-send, '{title}', '{message}']}"
            )
        variables = os.environ if environment is None else environment
        deliver(notification, config.notify, config, variables)

    def answer(
        self,
        text: str,
        value: object,
        *,
        options: RunOptions | None = None,
        question: int | None = None,
    ) -> ThreadId:
        """Record the answer to a waiting thread's question, then resume the thread.

        Args:
            question: the number of the question's record (`question_number`), so that the answer is
                not taken for that of a later question.
        Raises:
            RefusedError: the thread is not waiting. UsageError: the answer is not valid.
        """
        bundle_hash, thread, path = self.store.locate_thread(text)
        found = view(self.store, bundle_hash, thread, path)
        require(found.summary, "answer")
        if found.unbound:
            raise RefusedError(unbound(thread))
        if question is not None and question != question_number(found.records):
            raise RefusedError(f"thread {thread} asks something else by now; look at it again")
        value = check_answer(found.records, value)
        with self._journal(bundle_hash, thread) as journal:
            require_still(journal, self.store, bundle_hash, thread, "answer")
            # answered by another process, it asks something else by now
            if journal.history.lines != 1 + len(found.records):
                raise RefusedError(
                    f"thread {thread} went on since its question was read; look at what it asks now"
                )
            journal.append(lines.control("answer", {"value": value}, self._chance.clock_ms()))
            journal.flush()
        # crash here: the answer is kept, the thread is `interrupted`, and `resume` goes on with it
        self._drive(bundle_hash, thread, options or RunOptions())
        return thread

    def fork(
        self,
        text: str,
        *,
        cut: Cut | None = None,
        on: str | None = None,
        instead: Replacement | None = None,
        options: RunOptions | None = None,
        start: bool = True,
        accept: Accept | None = None,
    ) -> ThreadId:
        """Start a new thread from the first steps of another.

        Args:
            on: a hash, a flow name, or ``head``, to run another version; it gets the kept steps as
                ``input.steps``.
            instead: the outcome of the last kept step, instead of its own. start: False leaves the
                fork paused before its next effect.
            accept: as for `resume`; a fork of an imported thread is bound anew.
        """
        chosen, cut = options or RunOptions(), cut or Cut()
        source, target = self._source_of(text, on)
        # it starts while we check
        with (self._rouse(target) if start else None) or nullcontext() as worker:
            binding = self._fork_binding(source, target, cut, chosen, accept) if start else None
            plan = self._plan_fork(
                source, target, cut=cut, instead=instead, options=chosen, binding=binding
            )
            if start:
                return self.start_fork(plan, launching=worker)
        made = self._write_fork(plan)[1]
        self.pause(made)
        return made

    def plan_fork(
        self,
        text: str,
        *,
        cut: Cut | None = None,
        on: str | None = None,
        instead: Replacement | None = None,
        options: RunOptions | None = None,
        accept: Accept | None = None,
    ) -> ForkPlan:
        """Check a fork as `fork` does, for `start_fork`; nothing is written."""
        chosen, cut = options or RunOptions(), cut or Cut()
        source, target = self._source_of(text, on)
        binding = self._fork_binding(source, target, cut, chosen, accept)
        return self._plan_fork(
            source, target, cut=cut, instead=instead, options=chosen, binding=binding
        )

    def _source_of(self, text: str, on: str | None) -> tuple[ThreadPlace, BundleHash]:
        """Return the source of a fork, and the version that it will run."""
        from .threads.forking import target_of  # 5 ms of a list

        source = self.store.locate_thread(text)
        return source, target_of(self.store, self.registry, source, on)

    def _plan_fork(
        self,
        source: ThreadPlace,
        target: BundleHash,
        *,
        cut: Cut,
        instead: Replacement | None,
        options: RunOptions,
        binding: ThreadBinding | None,
    ) -> ForkPlan:
        from .threads.forking import plan_fork

        return plan_fork(
            self.store,
            self.registry,
            source,
            config=self.config,
            chance=self._chance,
            cut=cut,
            target=target,
            instead=instead,
            options=options,
            binding=binding,
        )

    def start_fork(self, plan: ForkPlan, *, launching: client.Launching | None = None) -> ThreadId:
        """Start a fork that was checked. launching: as for `run`."""
        bundle_hash, made = self._write_fork(plan)
        binding = plan.binding
        more = {} if binding is None else {"resume": {"binding": binding.fields}}
        self._drive(bundle_hash, made, plan.new.options, launching, **more)
        return made

    def _fork_binding(
        self,
        source: ThreadPlace,
        target: BundleHash,
        cut: Cut,
        options: RunOptions,
        accept: Accept | None,
    ) -> ThreadBinding | None:
        """Return the binding of a fork of an imported thread; None for other threads."""
        if ThreadOrigin.of(source[2]) is None:
            if options.binds_workspace:
                raise UsageError(
                    "a fork works where its source does; a workspace is chosen by `run`, or for an imported thread"
                )
            return None
        thread = new_thread_id(self._chance.clock_ms(), self._chance.entropy(ENTROPY_BYTES))
        bundle = granted_bundle(self.store, self.registry, target)
        return self._bind(source, bundle, thread, options, accept, cut=cut)

    def verify(self, text: str) -> Verification:
        """Check each line of a thread, and replay the bundle over the recorded outcomes."""
        from .threads.verify import verify

        config = self.config
        return verify(
            self.store,
            *self.store.locate_thread(text),
            prefer=config.sandbox,
            deadline_s=config.limits.bundle_s,
        )

    def check(self, flow: str, bundle: Bundle) -> list[ReplayCheck]:
        """Replay the past threads of *flow* with *bundle*; nothing is performed or written.

        Raises:
            RefusedError: a trusted bundle runs without a sandbox and is not replayed.
        """
        from .threads.regression import check

        if bundle.trusted:
            raise RefusedError(
                f"bundle {bundle.hash} is trusted: it is not replayed, so nothing can be proved before it runs"
            )
        config = self.config
        return check(
            self._past(flow), bundle, choose(config.sandbox), deadline_s=config.limits.bundle_s
        )

    def take_in(self, files: ThreadFiles, origin: ThreadOrigin) -> None:
        """Store an imported thread that was checked (`transfer.import_thread`).

        Raises: as `transfer.store_files`.
        """
        from .threads.transfer import store_files

        store_files(self.store, files, origin)

    def remove_thread(self, text: str) -> ThreadId:
        """Delete a thread that does not run, with its worktree, refs and logs."""
        from .threads.removal import remove

        bundle_hash, thread, path = self.store.locate_thread(text)
        require(summarise(self.store, bundle_hash, thread, path), "remove")
        remove(self.store, bundle_hash, thread, path)
        return thread

    def set_pinned(self, text: str, *, pinned: bool) -> ThreadId:
        """Keep a thread from removal, or no longer; return its id."""
        from .journal.pins import set_pinned

        bundle, thread, _ = self.store.locate_thread(text)
        set_pinned(self.store, bundle, thread, pinned=pinned)
        return thread

    def pinned(self) -> list[ThreadId]:
        """Return the pinned threads, the newest first."""
        from .journal.pins import pinned_threads

        return sorted((thread for _, thread in pinned_threads(self.store)), reverse=True)

    def unseen(self) -> list[ThreadSummary]:
        """List the threads that this machine's person may not know of (`threads.notifications`).

        Raises: as `notifications.read_seen`.
        """
        from .threads.notifications import notifications, read_seen

        seen = read_seen(self.store, self.clock_ms())
        return notifications(self.threads(), self.store.child_threads(), seen)

    def counts(self, *, most_read: int) -> ThreadCounts:
        """Count the threads by status, by the index. most_read: journals that are read for it."""
        from .threads.paging import count

        return count(self.store, most_read=most_read)

    def summary(self, bundle: BundleHash, thread: ThreadId) -> ThreadSummary:
        """Read a thread as a list shows it.

        Raises:
            NotFoundError: it was removed.
        """
        return summarise_thread(self.store, bundle, thread)

    def remove_threads(self, texts: Sequence[str]) -> Iterator[ThreadId]:
        """Delete threads, parents before their children; yield the id of each that is gone."""
        from .threads.removal import parents_first

        # resolve all names first, since `latest` changes
        found = parents_first(self.store.locate_threads(texts))
        ids = list(dict.fromkeys(thread for _, thread, _ in found))
        yield from map(self.remove_thread, ids)

    def prune(
        self,
        *,
        older_than_ms: int,
        flow: str | None = None,
        dry_run: bool = False,
        progress: Callable[[str, int], None] | None = None,
    ) -> Pruned:
        """Delete threads that ended longer ago than this, of one flow or of all, and what belongs
        to no thread any more.

        Args:
            progress: called with a kind of items and their number.
        """
        from .threads.housekeeping import prune

        del progress
        return prune(self, older_than_ms=older_than_ms, flow=flow, dry_run=dry_run)

    def archive(
        self,
        texts: Sequence[str],
        *,
        older_than_ms: int | None = None,
        flow: str | None = None,
        to: Path | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> Archived:
        """Compress the journals of ended threads.

        Args:
            texts: these threads. older_than_ms: those that ended longer ago than this, instead;
                flow: of it. to: where threads of a shared store are moved. progress: as `prune`.
        Raises:
            RefusedError: a named thread has not ended.
            UsageError: *to* is given for a directory, or lacks for a shared store.
        """
        from .threads.housekeeping import archive_threads

        del progress
        if to is not None:
            raise UsageError(
                "--to is for threads of a shared store; those of a directory are compressed where they are"
            )
        return archive_threads(self, texts, older_than_ms=older_than_ms, flow=flow)

    def running(self) -> list[ThreadSummary]:
        """List the threads that workers drive at this moment, those started last first."""
        from .threads.listing import running_threads

        return self._last_first(running_threads(self.store))

    def working(
        self,
        bundles: Collection[BundleHash] | None = None,
        threads: Collection[ThreadId] | None = None,
    ) -> list[dict[str, Any]]:
        """Return ``{hash, pid, threadId, doing, sinceMs, queued}`` for each thread that a worker
        drives, or for those of some *bundles*, or for some *threads*.

        queued: how many of its agents wait for others on this machine to finish.
        """
        found = []
        for bundle in {one.hash for one in self.running()} if bundles is None else bundles:
            for answer in client.answers(self.store, bundle, {"op": "list"}):
                found += [
                    {"hash": bundle, "pid": answer["pid"], **one}
                    for one in answer["threads"]
                    if threads is None or one["threadId"] in threads
                ]
        return found

    # What differs in a store whose threads run elsewhere (`shared_engine`).

    def refresh(self) -> None:
        """Bring in what other machines have changed in the registry."""

    def registry_mark(self) -> object:
        """Return what changes with every change of the registry; None without one."""
        try:
            found = self.store.registry_path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read_sentences(self) -> None:
        """Bring in what the reader of sentences needs besides flows: packs and constructions."""

    def keep_sentences(self) -> None:
        """Keep what was changed of that for all who use the store.

        Raises:
            ChangedMeanwhile: another machine has changed the same; its change is kept.
        """

    def is_driven(self, place: ThreadPlace) -> bool:
        """Tell whether a worker drives a thread."""
        return lock.is_live(archive.plain_of(place[2]))

    def wait_until_left(self, place: ThreadPlace) -> None:
        """Wait until no worker drives a thread, without reading its records."""
        wait_until_left(self.store, *place)

    def journal_size(self, place: ThreadPlace) -> int:
        """Return the size of a journal in bytes; -1 if it is elsewhere by now."""
        try:
            return os.stat(place[2]).st_size  # noqa: PTH116 - five times a second
        except FileNotFoundError:
            return -1

    def _past(self, flow: str) -> Iterator[PastThread]:
        """Yield the threads of a flow that do not run."""
        from .threads.regression import find_past

        return find_past(self.store, flow)

    @contextmanager
    def _journal(self, bundle: BundleHash, thread: ThreadId) -> Iterator[Journal]:
        """Own a thread's journal for a block.

        Raises:
            JournalBusy: another process drives the thread.
        """
        journal = JournalFile.open(self.store, bundle, thread)
        try:
            yield journal
        finally:
            journal.close()

    def _rouse(self, bundle: BundleHash) -> client.Launching | None:
        """Start a bundle's worker while the request for it is being checked."""
        return client.rouse(self.store, bundle)

    def _write_fork(self, plan: ForkPlan) -> tuple[BundleHash, ThreadId]:
        """Write a fork into the store; return its bundle and its id."""
        from .threads.forking import write_fork

        return write_fork(plan)

    def _drive(
        self,
        bundle: BundleHash,
        thread: ThreadId,
        options: RunOptions,
        launching: client.Launching | None = None,
        **more: object,
    ) -> None:
        environment = self.config.carried(options.environment)
        message = {
            "op": "drive",
            "threadId": thread,
            "environment": environment,
            "directory": str(options.directory),
            **more,
        }
        client.request(self.store, bundle, message, start=True, launching=launching)


def of_flow(
    summaries: list[ThreadSummary], name: str, versions: Collection[BundleHash] = ()
) -> list[ThreadSummary]:
    """Return the threads that were started by a flow's name, and those of its versions whose start
    record is damaged and has no name.
    """
    hashes = {*versions, *(one.hash for one in summaries if one.name == name)}
    return [one for one in summaries if one.name == name or (not one.name and one.hash in hashes)]


__all__ = [
    "Added",
    "Cut",
    "Engine",
    "Event",
    "Replacement",
    "RunOptions",
    "ThreadPlace",
    "ThreadSummary",
    "ThreadView",
    "of_flow",
]
