"""Trial of a bundle: one run that repeats nothing which leaves the machine and leaves nothing in
the store.

The step loop, the cells, the policy and the handlers are those of any thread; the journal, the
blobs and the worktrees are in a scratch directory. An effect that is not harmless
(`Handler.is_harmless`) is performed only if the caller allows it; else it gets its recorded
outcome, or ends the trial. A flow that the bundle calls is a trial within the trial.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from uncaged_bundles.errors import EnvironmentLacks, StorageError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, field, replace
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..cells.cell import CellLimits
from ..cells.shared import start_cells
from ..door.children import depth_of
from ..door.effects import Cancel, EffectContext, Handler, Rule
from ..door.outcomes import Failure, Outcome, Void, Wait
from ..door.preparing import RunOptions
from ..effect_kinds import handler_for
from ..journal.file import JournalFile, create
from ..settings.config import Config
from ..state.observe import ThreadView, view
from ..steps.driver import Driver
from ..steps.request import DriveRequest, WorkerContext
from .children import options_of, outcome_of
from .scratch import ScratchStore, scratch_store
from .starting import Chance, default_limits, granted_bundle, new_start, start_line

TRIAL_S = 600.0
"""Running time of a trial for which nothing else sets a limit."""

Source = Literal["performed", "recorded", "held"]
Ending = Literal["completed", "failed", "limit", "killed", "held", "unable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEffect:
    """Effect that a trial's bundle yields, or a flow that it calls.

    step: number of the step of the trial's own bundle. flows: names of the called flows down to the
    one that yields it; empty for the bundle itself. seq, part: its place in that one. body: without
    the keys of any effect. harmless: whether it may be performed without being allowed.
    """

    step: int
    flows: tuple[str, ...]
    seq: int
    part: int | None
    kind: str
    body: object
    harmless: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedEffect:
    """What became of an effect. outcome: None if it has none, as one that was held. reason: why it
    was held.
    """

    effect: TrialEffect
    source: Source
    outcome: Outcome | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """Result of a trial.

    ending: ``held`` at an effect that is neither harmless, nor allowed, nor recorded, or at a
    question to a person; ``unable`` if the machine lacks something. result: the bundle's, None
    unless it is completed. message: why it ended otherwise. records: its journal without the
    start record. effects: in the order in which they ended, without those that the policy refused.
    """

    ending: Ending
    result: object
    message: str
    effects: tuple[TriedEffect, ...]
    records: tuple[Mapping[str, Any], ...]

    @property
    def success(self) -> bool:
        """Whether the bundle returned, and its result does not say otherwise."""
        if self.ending != "completed":
            return False
        return not isinstance(self.result, Mapping) or self.result.get("success", True) is not False

    @property
    def unproved(self) -> TriedEffect | None:
        """Return the first effect that was not performed; None if all were."""
        return next((tried for tried in self.effects if tried.source != "performed"), None)


def known_of_none(effect: TrialEffect) -> Outcome | None:
    """Return None: no effect has an outcome that the caller knows."""
    del effect
    return None


def allow_none(effect: TrialEffect) -> bool:
    """Return False: no effect is allowed that is not harmless."""
    del effect
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The caller's word about effects. known: the recorded outcome of one. allow: whether one that
    is not harmless is performed. instead: performs one in the caller's way; None if it is none of
    those, a Void to hold it for the reason in its message.
    """

    known: Callable[[TrialEffect], Outcome | None] = known_of_none
    instead: Callable[[TrialEffect], Outcome | None] = known_of_none
    allow: Callable[[TrialEffect], bool] = allow_none


def run_trial(
    store: Store,
    config: Config,
    bundle: Bundle,
    *,
    prompt: str,
    params: Mapping[str, object],
    directory: Path | None,
    options: RunOptions,
    decisions: Decisions,
    cancel: Cancel | None,
    chance: Chance,
) -> TrialResult:
    """Run a bundle in a trial. See `Engine.trial`."""
    with scratch_store(store, chance, directory) as scratch:
        chosen = replace(options, directory=scratch.directory)
        found = _Trials(scratch=scratch, config=config, decisions=decisions, chance=chance)
        name = bundle.descriptor.name
        call = _Call(
            bundle=bundle, name=name, prompt=prompt, params=params, options=chosen, cancel=cancel
        )
        word, seen = found.run(call)
        ending, message = _ending(word, seen, found.held)
        return TrialResult(
            ending=ending,
            result=seen.end.get("result") if ending == "completed" and seen.end else None,
            message=message,
            effects=tuple(found.effects),
            records=tuple(seen.records),
        )


def _ending(word: str, seen: ThreadView, held: TriedEffect | None) -> tuple[Ending, str]:
    """Return how a thread ended, and why."""
    if word == "completed":
        return "completed", ""
    if word == "failed":
        return "failed", seen.summary.message
    if held is not None:
        return "held", held.reason
    if word == "limit":
        return "limit", seen.summary.message
    if word == "killed":
        return "killed", seen.summary.message
    voids = [str(record.get("message", "")) for record in seen.records if "void" in record]
    return "unable", voids[-1] if voids else seen.summary.message or word


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a bundle runs within a trial. step: of the trial's own bundle, None for itself."""

    step: int | None = None
    flows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """Call of a bundle. parent: the fields of a start record, for a called flow. cancel: the
    caller's token.
    """

    bundle: Bundle
    name: str
    prompt: str
    params: Mapping[str, object]
    options: RunOptions
    place: _Place = _Place()
    parent: Mapping[str, object] | None = None
    cancel: Cancel | None = None


@dataclass(slots=True, kw_only=True)
class _Trials:
    """A trial with those of the flows that it calls. held: the first effect that was held."""

    scratch: ScratchStore
    config: Config
    decisions: Decisions
    chance: Chance
    effects: list[TriedEffect] = field(default_factory=list)
    held: TriedEffect | None = None
    noting: threading.Lock = field(default_factory=threading.Lock)

    def note(self, tried: TriedEffect) -> None:
        """Keep what became of an effect; parts of one effect end in parallel."""
        with self.noting:
            self.effects.append(tried)
            if tried.source == "held" and self.held is None:
                self.held = tried

    def run(self, call: _Call) -> tuple[str, ThreadView]:
        """Run a bundle; return the word with which its driver left it, and its thread.

        Raises:
            UncagedError: it cannot be started.
        """
        bundle, options = call.bundle, call.options
        thread, path = self._begin(call)
        cells = start_cells(bundle, self.config.sandbox, limits=CellLimits(), begun=None)
        try:
            worker = WorkerContext(
                store=self.scratch,
                cells=cells,
                clock_ms=self.chance.clock_ms,
                publish=_publish_nothing,
                handlers=lambda kind: _TrialHandler(handler_for(kind), self, call.place),
                run_child=_ChildTrials(self, call.place),
            )
            journal = JournalFile.open(self.scratch, bundle.hash, thread)
            driver = Driver(
                thread=thread,
                slot=1,
                journal=journal,
                request=DriveRequest(
                    environment=self.config.carried(options.environment),
                    directory=options.directory,
                ),
                config=self.config,
                worker=worker,
            )
            try:
                with (call.cancel or Cancel()).on_request(lambda: _kill(driver)):
                    word = driver.run()
            finally:
                driver.close()
        finally:
            cells.close()
        return word, view(self.scratch, bundle.hash, thread, path)

    def _begin(self, call: _Call) -> tuple[ThreadId, Path]:
        """Write the start record, in the scratch directory."""
        bundle, options = call.bundle, call.options
        if options.max_seconds is None:
            own = default_limits(self.config, call.name, bundle).get("maxSeconds", TRIAL_S)
            options = replace(options, max_seconds=own)
        thread, start = new_start(
            store=self.scratch,
            thread=None,
            parent=call.parent,
            config=self.config,
            bundle=bundle,
            name=call.name,
            prompt=call.prompt,
            params=call.params,
            options=options,
            chance=self.chance,
        )
        path = self.scratch.data_path(bundle.hash, thread)
        line = start_line(self.scratch, start, self.chance.clock_ms())
        create(path, line, bundle.hash, thread)
        return thread, path


@dataclass(frozen=True, slots=True)
class _ChildTrials:
    """Runs of the flows that a bundle calls, each under the policy that a person granted it."""

    trials: _Trials
    place: _Place

    def __call__(
        self,
        context: EffectContext,
        *,
        flow: str,
        prompt: str,
        params: Mapping[str, object],
        max_rounds: int | None,
    ) -> Outcome:
        trials, person = self.trials, self.trials.scratch.person
        registry = Registry(person)
        step = context.seq if self.place.step is None else self.place.step
        try:
            name, bundle_hash = registry.resolve(flow)
            bundle = granted_bundle(person, registry, bundle_hash)
            call = _Call(
                bundle=bundle,
                name=name or bundle.descriptor.name,
                prompt=prompt,
                params=params,
                options=replace(options_of(context), max_rounds=max_rounds),
                place=_Place(step=step, flows=(*self.place.flows, flow)),
                parent={
                    "threadId": context.thread_id,
                    "seq": context.seq,
                    "depth": depth_of(context.start) + 1,
                },
                cancel=context.cancel,
            )
            word, seen = trials.run(call)
        except StorageError as exc:
            raise EnvironmentLacks(f"{flow}: {exc}") from exc
        except UncagedError as exc:
            return Failure.of("flow", f"{flow}: {exc}")
        ending, message = _ending(word, seen, trials.held)
        match ending:
            case "completed" | "failed":
                return outcome_of(seen, word)
            case "limit" | "killed":
                return Void(word=ending, message=f"{flow}: {message}")
            case "held" | "unable":
                return Void(word="environment", message=f"{flow}: {message}", begun=False)


class _TrialHandler(Handler):
    """Handler of a kind within a trial: decides whether the kind's own handler performs."""

    def __init__(self, real: Handler, trials: _Trials, place: _Place) -> None:
        self.kind = real.kind
        self.is_composite = real.is_composite
        self._real = real
        self._trials = trials
        self._place = place

    def rule(self, body: object, bundle: Bundle) -> Rule:
        return self._real.rule(body, bundle)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        place, decisions = self._place, self._trials.decisions
        # a composite effect does nothing itself; each of its parts comes here
        harmless = self.is_composite or self._real.is_harmless(body, context)
        effect = TrialEffect(
            step=context.seq if place.step is None else place.step,
            flows=place.flows,
            seq=context.seq,
            part=context.part,
            kind=self.kind,
            body=body,
            harmless=harmless,
        )
        other = decisions.instead(effect)
        if isinstance(other, Void):
            return self._hold(effect, other.message)
        if other is not None:
            return self._note(effect, "performed", other)
        if harmless or not decisions.allow(effect):
            known = decisions.known(effect)
            if known is not None:
                return self._note(effect, "recorded", known)
            if not harmless:
                return self._hold(effect, f"{shown(effect)} is not done again")
        try:
            outcome = self._real.perform(body, context)
        except (UncagedError, OSError):
            self._trials.note(TriedEffect(effect=effect, source="performed"))
            raise
        if isinstance(outcome, Wait):
            return self._hold(effect, f"{shown(effect)} waits for a person")
        return self._note(effect, "performed", outcome)

    def _note(self, effect: TrialEffect, source: Source, outcome: Outcome) -> Outcome:
        self._trials.note(TriedEffect(effect=effect, source=source, outcome=outcome))
        return outcome

    def _hold(self, effect: TrialEffect, reason: str) -> Void:
        self._trials.note(TriedEffect(effect=effect, source="held", reason=reason))
        return Void(word="environment", message=reason, begun=False)


def shown(effect: TrialEffect) -> str:
    """Return an effect in a few words, such as ``http POST https://…`` with the flows that lead to
    it.
    """
    body = effect.body if isinstance(effect.body, Mapping) else {}
    words = [
        str(body[key]) for key in ("method", "url", "do", "server", "tool", "name") if key in body
    ]
    within = "".join(f"flow {name}: " for name in effect.flows)
    return f"{within}{' '.join([effect.kind, *words])}"


def _kill(driver: Driver) -> None:
    with suppress(UncagedError):  # it was left just now
        driver.kill()


def _publish_nothing(_thread: ThreadId, _event: Mapping[str, object]) -> None:
    """Publish nothing: a trial has no followers."""
