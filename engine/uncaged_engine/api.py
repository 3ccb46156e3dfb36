"""The engine as a library: open a store, add, run, follow, steer and fork. The command line uses nothing else.

engine = Engine.open()
engine.add("hello", Path("hello.py").read_bytes(), accept=lambda widened: True)
thread = engine.run("hello", prompt="world")
for event in engine.follow(thread):
    print(event.kind, event.body)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.names import FlowName, parse_flow_name
from uncaged_bundles.policy import widening
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_bundles.version import __version__

from .handlers.sleep import is_due
from .journal import archive, chain, lines
from .journal.blobs import Blobs
from .journal.journal import Journal, JournalBusy, create
from .journal.recover import recover
from .known_effects import KNOWN
from .sandbox.mechanism import choose
from .settings.config import Config, load
from .state import states
from .state.observe import ThreadSummary, ThreadView, facts_of, step_records, summarise, view
from .threads.answering import check_answer
from .threads.following import Event, follow
from .threads.forking import Cut, Instead, copied_lines, fork_start, kept_steps, replacement_of
from .threads.starting import ENTROPY_BYTES, Chance, RunOptions, bind_agents, granted_bundle, new_start, pin_workspace, start_line
from .worker import client

if TYPE_CHECKING:  # `run` does without, and half of the command's start would go into them
    from .threads.estimate import Estimate
    from .threads.proof import Checked
    from .threads.verify import Verdict

FLAGS = {
    "maxRounds": "--max-rounds",
    "maxSteps": "--max-steps",
    "maxCost": "--max-cost",
    "maxTokens": "--max-tokens",
    "maxSeconds": "--max-time",
}
TEMPLATES = "uncaged_workflow.templates"
MAX_NOTE_CHARACTERS = 100_000
STEER_TIMEOUT_S = 10.0
STEER_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """changed: False if the name pointed to these very bytes already. widened: what the policy allows that the former version did not."""

    name: FlowName
    hash: BundleHash
    changed: bool
    widened: tuple[str, ...]


class Engine:
    """One store, and everything that can be done with it."""

    def __init__(self, store: Store, chance: Chance | None = None) -> None:
        self.store = store
        self.registry = Registry(store)
        self._chance = chance or Chance()

    @classmethod
    def open(cls, root: Path | None = None, chance: Chance | None = None) -> Engine:
        """Open (or make) a store; at the first open of an engine version the shipped flows are put in."""
        engine = cls(Store.open(root), chance)
        engine.registry.seed(__version__, _shipped_flows, now_ms=engine._chance.clock_ms())
        return engine

    @property
    def config(self) -> Config:
        return load(self.store)

    # Flows

    def add(self, name: str, source: bytes, *, accept: Callable[[tuple[str, ...]], bool], origin: str = "person") -> Added:
        """Register a bundle under a name.

        Args:
            accept: is asked with plain sentences what the policy newly allows; only called if there is something new.
        Raises:
            BundleError: the bundle is not valid. RefusedError: not accepted; nothing was stored.
        """
        flow = parse_flow_name(name)
        bundle = read_bundle(source, KNOWN, check_schemas=True)
        snapshot = self.registry.read()
        former = snapshot.flows.get(flow)
        before = self.store.load_bundle(former.hash, KNOWN).descriptor.policy if former is not None else None
        widened = () if self.registry.granted(bundle) else widening(before, bundle.descriptor.policy)
        if widened and not accept(widened):
            raise RefusedError(
                f"{flow} was not added: its policy asks for more and nobody accepted it; read the list above, then add it with --accept"
            )
        changed = self.registry.add(flow, bundle, now_ms=self._chance.clock_ms(), source=origin, granted=True)
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
            thread, parent: for a thread that another one starts: its id, and ``{"threadId", "seq", "depth"}`` of the other.
        Raises:
            What is in the way, before anything is written; or what kept the worker from taking it, after.
        """
        chosen = options or RunOptions()
        name, bundle_hash = self.registry.resolve(flow)
        with launching or client.rouse(self.store, bundle_hash) or nullcontext() as worker:  # it starts while we check
            bundle = granted_bundle(self.store, self.registry, bundle_hash)
            thread, start = new_start(
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
            pin_workspace(start, (), self.store, chosen)
            line = start_line(self.store, start, self._chance.clock_ms())
            create(self.store.data_path(bundle.hash, thread), line, bundle.hash, thread)
            # crash here: the thread is `interrupted`, and `resume` starts it
            self._drive(bundle.hash, thread, chosen, launching=worker)
        return thread

    def threads(self, flow: str | None = None) -> list[ThreadSummary]:
        """All threads, newest first; those of one flow or hash if it is named. One that cannot be read is listed all the same."""
        found = ((bundle, thread, path) for bundle, thread, path in self.store.find_journals())
        summaries = [summarise(self.store, bundle, thread, path) for bundle, thread, path in found]
        if flow is not None:
            name, bundle_hash = self.registry.resolve(flow)
            summaries = [one for one in summaries if (one.name == name if name else one.hash == bundle_hash)]
        return sorted(summaries, key=lambda one: one.thread_id, reverse=True)

    def thread(self, text: str) -> ThreadView:
        """One thread in full; *text* is an id, a unique prefix of one, or ``latest``."""
        return view(self.store, *self.store.locate_thread(text))

    def follow(self, text: str) -> Iterator[Event]:
        """Events from the start record on, as they reach the disk; the last one is the status."""
        return follow(self.store, *self.store.locate_thread(text))

    def pause(self, text: str) -> ThreadId:
        """Stop a thread before its next effect; on disk when this returns."""
        return self._steer(text, "pause", lambda now: lines.control("pause", {}, now))

    def kill(self, text: str) -> ThreadId:
        """End a thread: what is in flight is cancelled, its processes are ended."""
        return self._steer(text, "kill", lambda now: lines.end("killed", {}, now))

    def resume(
        self,
        text: str,
        *,
        redo: bool = False,
        skip: bool = False,
        note: str | None = None,
        options: RunOptions | None = None,
    ) -> ThreadId:
        """Go on with a thread that was paused, interrupted, killed, limited or left unknown.

        Args:
            redo, skip: what to do with an effect of which nobody knows whether it was performed. note: told to the next role.
            options: its limits replace the thread's; its directory and environment are the children's.
        Raises:
            RefusedError: its state forbids it; the message says the state and the next step.
        """
        if redo and skip:
            raise UsageError("--redo and --skip exclude each other")
        if note is not None and len(note) > MAX_NOTE_CHARACTERS:
            raise UsageError(f"the note has {len(note):,} characters; at most {MAX_NOTE_CHARACTERS:,} fit; put the rest into a file")
        bundle_hash, thread, path = self.store.locate_thread(text)
        found = view(self.store, bundle_hash, thread, path)
        self._allowed(found.summary, "resume")
        if found.summary.status == "unknown" and not (redo or skip):
            raise RefusedError(f"thread {thread} is unknown: {states.NEXT_STEP['unknown']}")
        chosen = options or RunOptions()
        fields: dict[str, object] = {**chosen.limits(), **({} if note is None else {"note": note})}
        _higher(found, fields)
        granted_bundle(self.store, self.registry, bundle_hash)
        if archive.is_archived(path):
            archive.restore(path)
        decided: dict[str, Any] = {name: True for name, wanted in (("redo", redo), ("skip", skip)) if wanted}
        self._drive(bundle_hash, thread, chosen, resume={**fields, **decided}, **decided)
        return thread

    def due(self) -> list[ThreadId]:
        """Interrupted threads that sleep (or slept) and whose moment has come."""
        now = self._chance.clock_ms()
        return [one.thread_id for one in self.threads() if one.status == "interrupted" and is_due(self.thread(one.thread_id), now)]

    def answer(self, text: str, value: object, *, options: RunOptions | None = None) -> ThreadId:
        """Answer a thread that waits for a person, and let it go on. The answer is on disk before anything else happens.

        Raises:
            RefusedError: it does not wait. UsageError: the answer does not fit what is asked.
        """
        bundle_hash, thread, path = self.store.locate_thread(text)
        found = view(self.store, bundle_hash, thread, path)
        self._allowed(found.summary, "answer")
        check_answer(found.records, value)
        journal = Journal.open(path, bundle_hash, thread)
        try:
            self._still_allowed(journal, bundle_hash, thread, "answer")
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
        instead: Instead | None = None,
        options: RunOptions | None = None,
        start: bool = True,
    ) -> ThreadId:
        """Start a new thread from the first steps of another.

        Args:
            on: a hash, a flow name, or ``head``, to go on with another version; it gets the kept steps as ``input.steps``.
            instead: takes the place of the last kept step's outcome. start: False leaves it paused before its next effect.
        """
        chosen = options or RunOptions()
        source_hash, source, path = self.store.locate_thread(text)
        data = archive.read(path) if archive.is_archived(path) else path.read_bytes()
        history = recover(data, source_hash, source)
        record = view(self.store, source_hash, source, path).start
        target = source_hash if on is None else self.registry.resolve(str(record["name"]) if on == "head" else on)[1]
        bundle = granted_bundle(self.store, self.registry, target)
        kept = kept_steps(history, cut or Cut(), source)
        if kept and (target != source_hash or bundle.trusted) and not bundle.descriptor.continues:
            raise RefusedError(
                f"bundle {target} cannot start from another version's steps: its descriptor does not say `continues`; use --at 0"
            )
        now = self._chance.clock_ms()
        thread = new_thread_id(now, self._chance.entropy(ENTROPY_BYTES))
        begin: dict[str, Any] = fork_start(record, history, kept, thread=thread, target=target)
        self._refit(begin, bundle, chosen)
        if instead is not None:
            begin["forkFrom"] = {**begin["forkFrom"], "instead": True}
        pin_workspace(begin, step_records(history, Blobs(self.store.blobs))[:kept], self.store, chosen)
        line = start_line(self.store, begin, now)
        made_up = None if instead is None else replacement_of(instead.value, history, kept)
        copied = copied_lines(data[: history.good_bytes], kept, chain.link(chain.seed(target, thread), line), made_up)
        create(self.store.data_path(target, thread), line, target, thread, more=copied)
        if start:
            self._drive(target, thread, chosen)
        else:
            self.pause(thread)
        return thread

    def verify(self, text: str) -> Verdict:
        """Prove a thread: check each line, and replay the bundle over the recorded outcomes."""
        from .threads.verify import verify

        config = self.config
        return verify(self.store, *self.store.locate_thread(text), prefer=config.sandbox, deadline_s=config.limits.bundle_s)

    def check(self, flow: str, bundle: Bundle) -> list[Checked]:
        """What *bundle* would have done in the past threads of *flow*: nothing is performed, nothing is written.

        Raises:
            RefusedError: a trusted bundle runs without a sandbox and is not replayed.
        """
        from .threads.proof import check

        if bundle.trusted:
            raise RefusedError(f"bundle {bundle.hash} is trusted: it is not replayed, so nothing can be proved before it runs")
        config = self.config
        past = (one for one in self.store.find_threads() if self._is_past(flow, *one))
        return check(self.store, bundle, choose(config.sandbox), past, deadline_s=config.limits.bundle_s)

    def remove_thread(self, text: str) -> ThreadId:
        """Delete a thread that does not run, with its worktree, refs and logs."""
        from .threads.removal import remove

        bundle_hash, thread, path = self.store.locate_thread(text)
        self._allowed(summarise(self.store, bundle_hash, thread, path), "remove")
        remove(self.store, bundle_hash, thread, path)
        return thread

    def working(self) -> list[dict[str, Any]]:
        """What the live workers do at this moment: ``{hash, pid, threadId, doing, sinceMs}`` for each live thread."""
        found = []
        for bundle in {one.hash for one in self.threads() if one.status == "running"}:
            answer = client.request(self.store, bundle, {"op": "list"}, start=False)
            for one in answer["threads"] if answer else ():
                found.append({"hash": bundle, "pid": answer["pid"] if answer else None, **one})
        return found

    def _is_past(self, flow: str, bundle: BundleHash, thread: ThreadId, path: Path) -> bool:
        summary = summarise(self.store, bundle, thread, path)
        return summary.name == flow and summary.status not in ("corrupt", "running")

    def _drive(
        self, bundle: BundleHash, thread: ThreadId, options: RunOptions, launching: client.Launching | None = None, **more: object
    ) -> None:
        environment = self.config.carried(options.environment)
        message = {"op": "drive", "threadId": thread, "environment": environment, "directory": str(options.directory), **more}
        client.request(self.store, bundle, message, start=True, launching=launching)

    def _steer(self, text: str, event: states.Event, written: Callable[[int], bytes]) -> ThreadId:
        """Let the worker do it, or, where there is none, take the lock and write it down ourselves."""
        bundle_hash, thread, path = self.store.locate_thread(text)
        self._allowed(summarise(self.store, bundle_hash, thread, path), event)
        journal = self._ask_or_take(bundle_hash, thread, path, event)
        if journal is None:
            return thread
        try:
            self._still_allowed(journal, bundle_hash, thread, event)
            now = self._chance.clock_ms()
            pending = journal.history.open
            if event == "kill" and pending is not None:
                journal.append(lines.void(pending.seq, "killed", "killed while nobody ran it", {}, now))
            journal.append(written(now))
            journal.flush()
        finally:
            journal.close()
        return thread

    def _ask_or_take(self, bundle: BundleHash, thread: ThreadId, path: Path, event: states.Event) -> Journal | None:
        """None if the thread's worker did it; else the journal, which is ours now."""
        deadline = time.monotonic() + STEER_TIMEOUT_S
        while True:
            with suppress(NotFoundError):  # a worker lives, and does not drive this thread
                if client.request(self.store, bundle, {"op": event, "threadId": thread}, start=False) is not None:
                    return None
            try:
                return Journal.open(path, bundle, thread)
            except JournalBusy:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(STEER_PAUSE_S)  # its worker is just coming, or just leaving

    def _allowed(self, summary: ThreadSummary, event: states.Event) -> None:
        if not states.allowed(summary.status, event):
            raise RefusedError(states.refusal(summary.status, event, summary.thread_id))

    def _still_allowed(self, journal: Journal, bundle: BundleHash, thread: ThreadId, event: states.Event) -> None:
        """The same, once nobody else can change it."""
        state = states.status(facts_of(journal.history, self.store, bundle), locked=False)
        if not states.allowed(state, event):
            raise RefusedError(states.refusal(state, event, thread))

    def _refit(self, begin: dict[str, Any], bundle: Bundle, options: RunOptions) -> None:
        """What a fork may change of its source's start record: limits and agents; and it works on a branch of its own."""
        begin["parameters"] = {**begin["parameters"], "options": {**begin["parameters"]["options"], **options.limits()}}
        if options.agents:
            begin["agents"] = bind_agents(self.config, bundle, str(begin["name"]), options)
        if "workspace" in begin:
            from .workspace import forked

            begin["workspace"] = forked(begin["workspace"], thread_id=begin["threadId"], flow=str(begin["name"]))


def _higher(found: ThreadView, fields: Mapping[str, object]) -> None:
    """A thread at its limit needs a higher one, or it would stop at once."""
    end = found.end
    if end is None or end.get("end") != "limit" or "value" not in end:
        return
    name, value = str(end["limit"]), float(end["value"])
    given = fields.get(name)
    if not isinstance(given, int | float) or given <= value:
        where = f"thread {found.summary.thread_id} is at its limit ({end.get('message')})"
        raise RefusedError(f"{where}; resume it with {FLAGS.get(name, name)} above {value:g}")


def _shipped_flows() -> Iterable[tuple[FlowName, Bundle]]:
    from importlib.metadata import entry_points

    from uncaged_bundles.build import build_workflow

    for entry in sorted(entry_points(group=TEMPLATES), key=lambda one: one.name):
        found = entry.load()
        for name, source in found() if callable(found) else [(entry.name, found)]:  # a function gives several flows, each with its name
            yield parse_flow_name(name), read_bundle(source if isinstance(source, bytes) else build_workflow(source, KNOWN), KNOWN)


__all__ = ["Added", "Cut", "Engine", "Event", "Instead", "RunOptions", "ThreadSummary", "ThreadView"]
