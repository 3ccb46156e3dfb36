"""The engine as a library: open a store, add, run, follow, steer and fork. The command line uses
nothing else.

engine = Engine.open()
engine.add("hello", Path("hello.py").read_bytes(), accept=lambda widened: True)
thread = engine.run("hello", prompt="world")
for event in engine.follow(thread):
    print(event.kind, event.body)
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from .journal import archive, lines
from .journal.file import JournalFile, create
from .journal.origin import ThreadOrigin, unbound
from .sandbox.mechanism import choose
from .settings.config import Config
from .settings.loading import load
from .shipped import add_shipped_flows
from .state import states
from .state.due import is_due
from .state.observe import ThreadSummary, ThreadView, summarise, view
from .threads.answering import check_answer
from .threads.binding import Accept, bind_here
from .threads.cutting import Cut, Replacement
from .threads.following import Event, follow
from .threads.forking import make_fork, target_of
from .threads.resuming import resume_fields
from .threads.starting import ENTROPY_BYTES, Chance, granted_bundle, new_start, start_line
from .threads.steering import require, require_still, steer
from .threads.tails import settle
from .worker import client

if TYPE_CHECKING:  # `run` does without, and half of the command's start would go into them
    from .threads.estimate import Estimate
    from .threads.regression import ReplayCheck
    from .threads.verify import Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """changed: False if the name pointed to these very bytes already. widened: what the policy
    allows that the former version did not.
    """

    name: FlowName
    hash: BundleHash
    changed: bool
    widened: tuple[str, ...]


class Engine:
    """One store, and everything that can be done with it."""

    def __init__(self, store: Store, chance: Chance | None = None) -> None:
        self.store = store
        self.registry = Registry(store)
        self.problems: tuple[str, ...] = ()  # what opening the store could not do
        self._chance = chance or Chance()

    @classmethod
    def open(cls, root: Path | None = None, chance: Chance | None = None) -> Engine:
        """Open (or make) a store, and add the flows of template packages that were installed since
        the last time.
        """
        engine = cls(Store.open(root), chance)
        engine.problems = add_shipped_flows(
            engine.store, engine.registry, engine._chance.clock_ms()
        )
        return engine

    @property
    def config(self) -> Config:
        return load(self.store)

    # Flows

    def add(
        self,
        name: str,
        source: bytes,
        *,
        accept: Callable[[tuple[str, ...]], bool],
        origin: str = "person",
    ) -> Added:
        """Register a bundle under a name.

        Args:
            accept: is asked with plain sentences what the policy newly allows; only called if there
                is something new.
        Raises:
            BundleError: the bundle is not valid. RefusedError: not accepted; nothing was stored.
        """
        former = self.registry.flow(name)
        flow = new_flow_name(name) if former is None else former.name
        # what is hashed is what is stored
        bundle = read_bundle(source.removeprefix(BOM_UTF8), KNOWN, check_schemas=True)
        before = (
            self.store.load_bundle(former.hash, KNOWN).descriptor.policy
            if former is not None
            else None
        )
        widened = (
            ()
            if self.registry.granted(bundle)
            else widening(before, bundle.descriptor.policy, KNOWN)
        )
        if widened and not accept(widened):
            raise RefusedError(
                f"{flow} was not added: its policy asks for more and nobody accepted it; read the list above, then add it with --accept"
            )
        changed = self.registry.add(
            flow, bundle, now_ms=self._chance.clock_ms(), source=origin, granted=True
        )
        return Added(name=flow, hash=bundle.hash, changed=changed, widened=widened)

    def bundle(self, text: str) -> Bundle:
        """The bundle that a flow name or a hash means."""
        return self.store.load_bundle(self.registry.resolve(text)[1], KNOWN)

    def estimate(self, flow: str) -> Estimate:
        """What past threads of the flow's present version took."""
        from .threads.estimate import estimate

        return estimate(self.registry.resolve(flow)[1], self.threads())

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
            launching: the flow's worker, if it is starting already (`worker.early`).
            thread, parent: for a thread that another one starts: its id, and
                ``{"threadId", "seq", "depth"}`` of the other.
        Raises:
            What is in the way, before anything is written; or what kept the worker from taking it,
            after.
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
        """All threads, those started last first, or those of one flow or hash. One that cannot be
        read is listed all the same.
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

    def _last_first(self, summaries: Iterable[ThreadSummary]) -> list[ThreadSummary]:
        order = self.store.start_order()
        return sorted(
            summaries, key=lambda one: (order.get(one.thread_id, -1), one.thread_id), reverse=True
        )

    def thread(self, text: str) -> ThreadView:
        """One thread in full; *text* is an id, a unique prefix of one, or ``latest``."""
        return view(self.store, *self.store.locate_thread(text))

    def follow(self, text: str) -> Iterator[Event]:
        """Events from the start record on, as they reach the disk; the last one is the status."""
        return follow(self.store, *self.store.locate_thread(text))

    def pause(self, text: str) -> ThreadId:
        """Stop a thread before its next effect; on disk when this returns."""
        return steer(
            self.store,
            text,
            "pause",
            lambda now: lines.control("pause", {}, now),
            self._chance.clock_ms,
        )

    def kill(self, text: str) -> ThreadId:
        """End a thread: what is in flight is cancelled, its processes are ended."""
        return steer(
            self.store,
            text,
            "kill",
            lambda now: lines.end("killed", {}, now),
            self._chance.clock_ms,
        )

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
        """Go on with a thread that was paused, interrupted, killed, limited or left unknown.

        Lines that a failed flush left in doubt are brought to disk first; the thread may have ended
        with them.

        Args:
            redo, skip: what to do with an effect that may have been performed and has no outcome.
                note: told to the next role.
            options: its limits replace the thread's; its directory and environment are the
                children's. Its agents, workspace, links and test command bind an imported thread.
            accept: is asked with plain sentences what an imported thread would use here, before it
                is bound.
        Raises:
            RefusedError: its state forbids it, or it is imported and was not accepted; the message
                says the next step.
        """
        if redo and skip:
            raise UsageError("--redo and --skip exclude each other")
        bundle_hash, thread, path = self.store.locate_thread(text)
        settled = settle(self.store, path, bundle_hash, thread)
        found = view(self.store, bundle_hash, thread, path)
        if settled and found.end is not None and not states.allowed(found.summary.status, "resume"):
            return thread  # it had ended, and only its last lines were in doubt
        chosen = options or RunOptions()
        fields = resume_fields(found, redo=redo, skip=skip, note=note, limits=chosen.limits())
        if not (found.unbound and found.summary.status == "waiting"):
            require(found.summary, "resume")
        bundle = granted_bundle(self.store, self.registry, bundle_hash)
        if chosen.binds and not found.unbound:
            raise UsageError(
                f"thread {thread} is bound already: agents, workspace and test command are changed by a fork, not by `resume`"
            )
        if found.unbound:
            source = bundle_hash, thread, path
            now_ms = self._chance.clock_ms()
            binding = bind_here(
                self.store,
                self.config,
                bundle,
                source,
                thread=thread,
                options=chosen,
                accept=accept,
                now_ms=now_ms,
            )
            fields = {**fields, "binding": binding}
        if archive.is_archived(path):
            archive.restore(path)
        if found.summary.status == "waiting":
            self.pause(thread)  # the bundle itself puts its question again
        self._drive(bundle_hash, thread, chosen, resume=fields)
        return thread

    def due(self) -> list[ThreadId]:
        """Interrupted threads that sleep (or slept) and whose moment has come."""
        now = self._chance.clock_ms()
        interrupted = [
            self.thread(one.thread_id) for one in self.threads() if one.status == "interrupted"
        ]
        return [
            one.summary.thread_id
            for one in interrupted
            if not one.unbound and is_due(one.records, now)
        ]

    def answer(self, text: str, value: object, *, options: RunOptions | None = None) -> ThreadId:
        """Answer a thread that waits for a person, and let it go on. The answer is on disk before
        anything else happens.

        Raises:
            RefusedError: it does not wait. UsageError: the answer does not fit what is asked.
        """
        bundle_hash, thread, path = self.store.locate_thread(text)
        found = view(self.store, bundle_hash, thread, path)
        require(found.summary, "answer")
        if found.unbound:
            raise RefusedError(unbound(thread))
        value = check_answer(found.records, value)
        journal = JournalFile.open(self.store, bundle_hash, thread)
        try:
            require_still(journal, self.store, bundle_hash, thread, "answer")
            # somebody answered, and it asks something else by now
            if journal.history.lines != 1 + len(found.records):
                raise RefusedError(
                    f"thread {thread} went on since its question was read; look at what it asks now"
                )
            journal.append(lines.control("answer", {"value": value}, self._chance.clock_ms()))
            journal.flush()
        finally:
            journal.close()
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
            on: a hash, a flow name, or ``head``, to go on with another version; it gets the kept
                steps as ``input.steps``.
            instead: takes the place of the last kept step's outcome. start: False leaves it paused
                before its next effect.
            accept: as for `resume`; a fork of an imported thread is bound anew.
        """
        chosen, cut = options or RunOptions(), cut or Cut()
        source = self.store.locate_thread(text)
        target = target_of(self.store, self.registry, source, on)
        # it starts while we check
        with (client.rouse(self.store, target) if start else None) or nullcontext() as worker:
            thread, binding = (
                self._fork_binding(source, target, cut, chosen, accept) if start else (None, None)
            )
            bundle_hash, made = make_fork(
                self.store,
                self.registry,
                source,
                config=self.config,
                chance=self._chance,
                cut=cut,
                target=target,
                instead=instead,
                options=chosen,
                thread=thread,
            )
            if start:
                more = {} if binding is None else {"resume": {"binding": binding}}
                self._drive(bundle_hash, made, chosen, worker, **more)
        if not start:
            self.pause(made)
        return made

    def _fork_binding(
        self,
        source: tuple[BundleHash, ThreadId, Path],
        target: BundleHash,
        cut: Cut,
        options: RunOptions,
        accept: Accept | None,
    ) -> tuple[ThreadId | None, Mapping[str, Any] | None]:
        """The id of a fork of an imported thread, and what it uses of this machine; None for other
        threads.
        """
        if ThreadOrigin.of(source[2]) is None:
            if options.binds_workspace:
                raise UsageError(
                    "a fork works where its source does; a workspace is chosen by `run`, or for an imported thread"
                )
            return None, None
        now_ms = self._chance.clock_ms()
        thread = new_thread_id(now_ms, self._chance.entropy(ENTROPY_BYTES))
        bundle = granted_bundle(self.store, self.registry, target)
        binding = bind_here(
            self.store,
            self.config,
            bundle,
            source,
            thread=thread,
            cut=cut,
            options=options,
            accept=accept,
            now_ms=now_ms,
        )
        return thread, binding

    def verify(self, text: str) -> Verification:
        """Prove a thread: check each line, and replay the bundle over the recorded outcomes."""
        from .threads.verify import verify

        config = self.config
        return verify(
            self.store,
            *self.store.locate_thread(text),
            prefer=config.sandbox,
            deadline_s=config.limits.bundle_s,
        )

    def check(self, flow: str, bundle: Bundle) -> list[ReplayCheck]:
        """What *bundle* would have done in the past threads of *flow*: nothing is performed,
        nothing is written.

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
            self.store, bundle, choose(config.sandbox), flow, deadline_s=config.limits.bundle_s
        )

    def remove_thread(self, text: str) -> ThreadId:
        """Delete a thread that does not run, with its worktree, refs and logs."""
        from .threads.removal import remove

        bundle_hash, thread, path = self.store.locate_thread(text)
        require(summarise(self.store, bundle_hash, thread, path), "remove")
        remove(self.store, bundle_hash, thread, path)
        return thread

    def running(self) -> list[ThreadSummary]:
        """The threads that workers drive at this moment, those started last first."""
        from .threads.listing import running_threads

        return self._last_first(running_threads(self.store))

    def working(self) -> list[dict[str, Any]]:
        """What the live workers do at this moment:
        ``{hash, pid, threadId, doing, sinceMs, queued}`` for each live thread.

        queued: how many of its agents wait because others work already, on the whole machine.
        """
        found = []
        for bundle in {one.hash for one in self.running()}:
            for answer in client.answers(self.store, bundle, {"op": "list"}):
                found += [
                    {"hash": bundle, "pid": answer["pid"], **one} for one in answer["threads"]
                ]
        return found

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
    """The threads that a flow's name began, and those of its versions whose damaged start does not
    tell the name.
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
    "ThreadSummary",
    "ThreadView",
    "of_flow",
]
