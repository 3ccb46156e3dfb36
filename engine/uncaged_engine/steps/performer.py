"""Execution of effects through their handlers: retries, parts, usage and prices. Every effect gets
exactly one outcome.

A failure that the effect's ``retry`` covers is retried after a growing pause, with an attempt line
for each. Effects inside an effect are
sub-steps: each has its own line and flush, and is not repeated when the whole effect is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, StorageError, os_problem
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.policy import refusal
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..costs.prices import priced
from ..costs.spending import Spending
from ..door.effects import (
    AgentPermits,
    Cancel,
    EffectContext,
    Handler,
    Rule,
    RunChild,
    ThreadContext,
    handled,
)
from ..door.notifications import Notification
from ..door.outcomes import Answer, Failure, Outcome, TryLater, Void, Wait
from ..effect_kinds import handler_for
from ..journal import lines
from ..journal.journal import Journal, JournalBroken
from ..journal.recover import History
from ..processes import shortage
from ..settings.config import Config
from ..state.undecided import Doubt
from .commands import Perform
from .finished import FinishedSteps
from .observing import ThreadObservation

MAX_TIMES = 20
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
LONGEST_ASKED_S = 600.0
"""An answer that asks for a longer pause is final."""
NO_RECORDS: Mapping[int, Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retry policy of an effect: how often, and for which kinds of error (none named: all)."""

    times: int
    on: frozenset[str]
    pause_s: float

    @classmethod
    def of(cls, body: object) -> Retry | str:
        """The retry that an effect asks for, or what is wrong with it."""
        asked = body.get("retry") if isinstance(body, dict) else None
        if asked is None:
            return NO_RETRY
        if not isinstance(asked, dict) or not set(asked) <= {"times", "on", "pause_s"}:
            return 'retry is a mapping with "times", and perhaps "on" and "pause_s"'
        times, on, pause_s = (
            asked.get("times", 1),
            asked.get("on", []),
            asked.get("pause_s", FIRST_PAUSE_S),
        )
        if not isinstance(times, int) or isinstance(times, bool) or not 0 <= times <= MAX_TIMES:
            return f"retry.times is a whole number from 0 to {MAX_TIMES}"
        if not isinstance(on, list) or not all(isinstance(one, str) for one in on):
            return "retry.on is a list of error kinds"
        if (
            not isinstance(pause_s, int | float)
            or isinstance(pause_s, bool)
            or not 0 <= pause_s <= LONGEST_PAUSE_S
        ):
            return f"retry.pause_s is a number of seconds from 0 to {LONGEST_PAUSE_S:.0f}"
        return cls(times=times, on=frozenset(on), pause_s=float(pause_s))

    def error(self, outcome: Outcome) -> Mapping[str, object] | None:
        """Return the error for which an outcome is tried again; None if this retry does not cover
        it.
        """
        match outcome:
            case Failure():
                error = outcome.error
            case Answer(later=TryLater(after_s=after_s, reason=reason)) if (
                after_s <= LONGEST_ASKED_S
            ):
                error = {"kind": "status", "message": reason}
            case _:
                return None
        return error if not self.on or str(error.get("kind")) in self.on else None

    def delay_s(self, outcome: Outcome, tried: int) -> float:
        """Return the pause before try *tried* + 1: it doubles from try to try, and is at least as
        long as the other side asked for.
        """
        growing: float = min(self.pause_s * 2 ** (tried - 1), LONGEST_PAUSE_S)
        return (
            max(growing, outcome.later.after_s)
            if isinstance(outcome, Answer) and outcome.later is not None
            else growing
        )


NO_RETRY = Retry(times=0, on=frozenset(), pause_s=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leftover:
    """State of the next effect as an earlier owner of the thread left it.

    doubt: whether it may have been performed. answer: a person's answer to it. done: the records of
    its finished parts, by index.
    """

    doubt: Doubt
    answer: object
    done: Mapping[int, Mapping[str, object]]


class Performer:
    """Performer of one thread's effects, and their recorder."""

    def __init__(
        self,
        *,
        store: Store,
        bundle: Bundle,
        config: Config,
        thread: ThreadId,
        journal: Journal,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
        directory: Path,
        cancel: Cancel,
        spending: Spending,
        progress: Callable[[Mapping[str, object]], None],
        clock_ms: Callable[[], int],
        handlers: Callable[[str], Handler] = handler_for,
        run_child: RunChild | None = None,
        agents: AgentPermits | None = None,
        notify: Callable[[Notification], None],
        observation: ThreadObservation | None = None,
    ) -> None:
        self._store = store
        self._bundle = bundle
        self._config = config
        self._thread = thread
        self._journal = journal
        self._cancel = cancel
        self._observation = observation
        self._spending = spending
        self._is_timed = spending.timed
        self._progress = progress
        self._clock_ms = clock_ms
        self._find_handler = handlers
        self._handlers: dict[str, Handler] = {}
        self._note: str | None = None
        self._leftover: _Leftover | None = None
        # of the effect under way: begun, and without an outcome; a void names them, so that the
        # question to a person is about these parts only
        self._begun_parts: set[int] = set()
        self._intended_ms = 0
        self._paths: dict[str, object] = {}
        self._remembering = threading.Lock()
        self._thread_context = ThreadContext(
            store=store,
            bundle=bundle,
            config=config,
            thread_id=thread,
            start=start,
            steps=FinishedSteps(journal).records,
            environment=environment,
            directory=directory,
            remember_paths=self._remember_paths,
            left=spending.left,
            clock_ms=clock_ms,
            run_child=run_child,
            agents=agents,
            notify=notify,
        )

    @property
    def thread(self) -> ThreadContext:
        """Return the context that all effects of the thread share."""
        return self._thread_context

    def restore(self, history: History, *, screenshots: bool = False) -> None:
        """Read from the history the state of the next effect: note, answer, finished parts, and the
        time of its first intent.

        Args:
            screenshots: whether the thread was started with them.
        """
        if (screenshots and history.binding is None) or history.screenshots:
            self._thread_context = replace(self._thread_context, screenshots=True)
        self._note, pending = history.note, history.pending
        self._paths = dict(history.paths)
        if pending is not None:
            records = [json.loads(self._journal.blobs.expand(line)) for line in pending.subs]
            done = {int(record["sub"]): record for record in records}
            self._leftover = _Leftover(
                doubt=Doubt.about(pending, self._store, self._thread),
                answer=history.answer,
                done=done,
            )
            self._intended_ms = pending.intended_ms

    def rule(self, kind: str, body: object) -> Rule:
        """Return the recovery rule of the open effect. One of an unknown kind may be tried, because
        nothing here can perform it.
        """
        try:
            if self._leftover is not None and any(
                self._leftover.doubt.names(kind, body, self._bundle)
            ):
                return "ask"
            rule = self._handler(kind).rule(handled(body), self._bundle)
        except NotFoundError:
            return "repeat"
        return "repeat" if rule == "ask" else rule  # nothing of it is in doubt

    def only_waits(self, kind: str) -> bool:
        """Tell whether effects of a kind do nothing but wait."""
        return self._handler(kind).only_waits

    def perform(self, command: Perform) -> Outcome:
        """Perform one effect. Any exception but a broken journal is a bug of the engine."""
        self._intended_ms = command.intended_ms
        self._begun_parts.clear()  # of the last effect: its step or void has settled them
        context = self._context(command.seq, command.kind, command.attempt)
        if self._observation is not None:
            self._observe(context, command.body)
        if self._is_timed:
            with self._spending.watch():
                outcome = self._try(command.kind, command.body, context)
        else:
            outcome = self._try(command.kind, command.body, context)
        # after the watch: a limit that was reached meanwhile turns the outcome into a void
        outcome = self._spending.settle(outcome)
        if isinstance(outcome, Void):
            outcome = self._voided(outcome)
        if command.kind == "role":
            self._note = None  # a note is for one prompt
        if context.observer is not None:
            context.observer.done(outcome)
        return outcome

    def _observe(self, context: EffectContext, body: object) -> None:
        """Give an effect its observer."""
        if self._observation is not None:
            kind, key = context.kind, context.key
            context.observer = self._observation.effect(
                context, body, lambda: self._handler(kind).child(key, context.intended_ms)
            )

    def _voided(self, void: Void) -> Void:
        """Add the parts that had begun to a void; a pause becomes an `environment` void, so that
        `resume` repeats the effect.
        """
        if self._begun_parts:
            void = replace(void, begun=True, parts=tuple(sorted(self._begun_parts)))
        if void.word == "killed" and self._cancel.only_paused:
            return replace(
                void, word="environment", message="paused before it was done; `resume` asks again"
            )
        return void

    def _try(
        self, kind: str, body: object, context: EffectContext, part: int | None = None
    ) -> Outcome:
        """Call the handler, with the effect's retries. A void counts as begun unless the handler
        says otherwise.
        """
        bare = handled(body)
        retry = NO_RETRY if bare is body else Retry.of(body)
        if isinstance(retry, str):
            return Failure.of("effect", f"{kind}: {retry}")
        tried = context.attempt - 1
        try:
            handler = self._handlers.get(kind) or self._handler(kind)
        except NotFoundError as exc:
            return Void(word="environment", message=str(exc), begun=False)
        # a kill between the intent and here: nothing was begun, and the void may say so
        if self._cancel.requested:
            return Void(word="killed", message="killed before it was begun", begun=False)
        while True:
            try:
                outcome = handler.perform(bare, context)
                # only usage has a price, and most effects use up nothing
                if type(outcome) is not Answer or "usage" in outcome.fields:
                    outcome = self._priced(outcome)
            except JournalBroken:
                raise  # no void can be written either
            # a lack is known before the effect is begun, unless its handler says otherwise; a store
            # that failed may have failed behind the effect
            except (EnvironmentLacks, StorageError) as exc:
                had_begun = exc.begun if isinstance(exc, EnvironmentLacks) else True
                outcome = Void(word="environment", message=str(exc), begun=had_begun)
            # a full or broken disk, no process to be had: the machine's fault, wherever the handler
            # met it
            except OSError as exc:
                # a write says not where it failed
                place = self._store.work if exc.errno in shortage.CODES else ""
                outcome = Void(
                    word="environment",
                    message=f"{kind}: {os_problem(exc, place)}; correct that, then resume",
                )
            # an earlier attempt was sent
            if isinstance(outcome, Void) and tried >= context.attempt:
                return replace(outcome, begun=True)
            error = retry.error(outcome) if tried < retry.times else None
            if error is None or not isinstance(outcome, (Answer, Failure)):
                return outcome
            # before the pause: its usage counts even if the thread is killed during it
            tried += 1
            self._spending.settle_part(part, outcome)
            context.record_attempt({"because": "retry", "error": error})
            if self._cancel.wait(retry.delay_s(outcome, tried)):
                return Void(word="killed", message="killed while it waited to be tried again")

    def perform_part(self, context: EffectContext, index: int, kind: str, body: object) -> Outcome:
        """Perform a part of an effect; its line is on disk when this returns."""
        seq = context.seq
        refused = refusal(self._bundle.descriptor.policy, kind)
        if refused is not None:
            outcome: Outcome = Failure.of("policy", refused)
        else:
            inner = self._context(seq, kind, 1, index)
            outcome = self._begin_part(kind, body, inner, index)
        if isinstance(outcome, Answer | Failure):
            self._spending.settle_part(index, outcome)
            body_line = lines.step(seq, {"sub": index, **outcome.fields}, self._clock_ms())
            if len(body_line) > lines.SPILL_BYTES:
                body_line = lines.step(
                    seq,
                    {"sub": index, **self._journal.blobs.spill(outcome.fields)},
                    self._clock_ms(),
                )
            # flushed at once: a later owner repeats the effect, but no part that has a line
            self._journal.append(body_line, flush=True)
            self._begun_parts.discard(index)
            self._spending.check()
        return outcome

    def _begin_part(self, kind: str, body: object, context: EffectContext, index: int) -> Outcome:
        """Perform a part. It counts as begun until its line is on disk, unless its void says
        otherwise.
        """
        self._begun_parts.add(index)
        if self._observation is not None:
            self._observe(context, body)
        outcome = self._try(kind, body, context, index)
        if context.observer is not None:
            context.observer.done(outcome)
        if isinstance(outcome, Wait) or (isinstance(outcome, Void) and not outcome.begun):
            self._begun_parts.discard(index)
        return outcome

    def _context(self, seq: int, kind: str, attempt: int, part: int | None = None) -> EffectContext:
        leftover = (
            self._leftover
            if self._leftover is not None and self._leftover.doubt.pending.seq == seq
            else None
        )
        return EffectContext(
            thread=self._thread_context,
            recorder=self,
            seq=seq,
            kind=kind,
            part=part,
            attempt=attempt,
            key=f"{self._thread}/{seq}" if part is None else f"{self._thread}/{seq}.{part}",
            intended_ms=self._intended_ms,
            cancel=self._cancel,
            note=self._note,
            answer=leftover.answer if leftover is not None and part is None else None,
            redo=leftover is not None and leftover.doubt.is_redone,
            done=leftover.done if leftover is not None else NO_RECORDS,
            numbers=count(attempt + 1),
        )

    def _priced(self, outcome: Outcome) -> Outcome:
        """Add the cost to an outcome's usage, where the price is known."""
        if isinstance(outcome, Answer):
            if "usage" in outcome.fields and isinstance(usage := outcome.fields["usage"], Mapping):
                return replace(
                    outcome, fields={**outcome.fields, "usage": priced(usage, self._config.prices)}
                )
        elif isinstance(outcome, Failure) and isinstance(
            usage := outcome.error.get("usage"), Mapping
        ):
            return Failure(error={**outcome.error, "usage": priced(usage, self._config.prices)})
        return outcome

    def report_progress(self, context: EffectContext, fields: Mapping[str, object]) -> None:
        """Publish progress, and count the usage that it reports."""
        usage, child = fields.get("usage"), fields.get("child")
        if isinstance(usage, Mapping):
            used = priced(usage, self._config.prices)
            fields = {**fields, "usage": used}
            if isinstance(child, str):
                self._spending.note_child(child, used, part=context.part)
            else:
                self._spending.note(used, part=context.part)
        self._progress({"seq": context.seq, "kind": context.kind, **fields})

    def record_attempt(self, context: EffectContext, fields: Mapping[str, object]) -> None:
        """Append and flush the line of the next attempt, before it is made: a later owner counts it
        even if it was cut off.
        """
        seq, number = context.seq, next(context.numbers)
        line = lines.attempt(seq, number, fields, self._clock_ms())
        if len(line) > lines.SPILL_BYTES:
            line = lines.attempt(seq, number, self._journal.blobs.spill(fields), self._clock_ms())
        self._journal.append(line, flush=True)
        if context.observer is not None:
            context.observer.attempt(number, fields)
        self._spending.check()

    def _remember_paths(self, found: Mapping[str, object]) -> Mapping[str, object]:
        """Record the first use of each granted path, under a lock because parts run in parallel."""
        with self._remembering:
            fresh = {entry: first for entry, first in found.items() if entry not in self._paths}
            if fresh:
                self._journal.append(
                    lines.control("paths", {"paths": fresh}, self._clock_ms()), flush=True
                )
                self._paths |= fresh
            return dict(self._paths)

    def _handler(self, kind: str) -> Handler:
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handlers[kind] = self._find_handler(kind)
        return handler
