"""Driver of one flow thread: an operating-system thread that executes the commands of the step
loop.

Rule 1: the driver holds the journal's lock from before the first command until after the last.
Rule 2: nothing but a broken disk, a bundle at fault or an engine bug leaves the loop early; the
journal stays as it is, to be resumed.
Rule 3: a pause or kill is obeyed, or refused because the thread was left; it is never accepted and
then lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import (
    BundleError,
    EngineBug,
    NotFoundError,
    RefusedError,
    ReplayError,
    UncagedError,
    os_problem,
)
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.policy import refusal
from uncaged_bundles.version import __version__

from ..cells.reply import BundleReply
from ..cells.session import BundleSession, BundleTooSlow
from ..costs.spending import Spending
from ..door.effects import Cancel, Rule
from ..door.observing import ObservedThread
from ..door.outcomes import Outcome
from ..effect_kinds import preparations_of
from ..journal import lines
from ..journal.infolog import InfoLog
from ..journal.journal import Journal, JournalBusy
from ..journal.recover import LIMITS, History
from ..settings.config import Config
from ..settings.variables import observed_variables
from .accepting import accept
from .commands import Ask, Command, Flush, Perform, Spill, StepProgress, Write
from .fast_lane import FastLane
from .loop import Position, run_loop
from .observing import ThreadObservation, interrupted_try
from .performer import Performer
from .request import DriveRequest, WorkerContext
from .status_notes import StatusNotes


class Driver:
    """Driver of one thread. `pause` and `kill` may be called from other threads."""

    def __init__(
        self,
        *,
        thread: ThreadId,
        slot: int,
        journal: Journal,
        request: DriveRequest,
        config: Config,
        worker: WorkerContext,
    ) -> None:
        self.thread = thread
        self._since_s = 0.0
        self._doing: Perform | None = None
        self._queued = 0
        self._counting = threading.Lock()
        self._slot = slot
        self._journal = journal
        self._request = request
        self._config = config
        self._worker = worker
        self._bundle = worker.cells.bundle
        self._limits: dict[str, float] = {}
        self._max_rounds = self._max_steps = 0
        self._spending: Spending | None = None
        self._cancel = Cancel()
        self._stop: str | None = None
        self._left = False
        self._steering = threading.Lock()
        self.info = InfoLog(worker.store.info_path(self._bundle.hash, thread), worker.clock_ms)
        self._notes = StatusNotes(
            thread,
            config=config,
            environment=request.environment,
            sender=worker.sender,
            info=self.info,
        )
        self._performer: Performer | None = None
        # of its former owner: the request that was accepted may add lines
        self._found_line = journal.history.last_line
        self._observation: ThreadObservation | None = None
        self._start: Mapping[str, Any] | None = None

    def run(self) -> str:
        """Drive the thread until it ends or must be left.

        Returns:
            An end word, or paused, waiting, unknown, interrupted.
        Raises:
            Anything that is a bug of the engine.
        """
        journal, thread, worker = self._journal, self.thread, self._worker
        word = "interrupted"
        # followers learn of a line only after its flush: what they were shown cannot be lost
        journal.on_flush = lambda size: worker.publish(thread, {"flushed": size})
        self.info.note(
            "7WQ2NHC5",
            f"worker {os.getpid()} of engine {__version__} takes it up, {len(journal.history.steps)} steps done",
        )
        try:
            word = self._drive_or_fail()
            self._release(word)
            self.info.note("2KD9V4TZ", f"left: {word}")
            return word
        except (UncagedError, OSError) as exc:
            # an OSError outside of an effect: what was written before could not be read
            why = os_problem(exc, journal.place) if isinstance(exc, OSError) else str(exc)
            self.info.note("4TQ8ZJ1M", f"left: {why}")
            worker.publish(thread, {"left": "interrupted", **journal.note(why).document()})
            word = self._leave("interrupted")
            return word
        finally:
            # the worker announces the end itself, and no flush may be published behind it
            journal.on_flush = _ignore
            if self._observation is not None:
                self._observation.left(word, journal.reread)

    def _release(self, word: str) -> None:
        """Have the effects' preparations keep what follows from a success, or remove what a thread
        without one left unused. A failure is only noted: `prune` and `thread rm` remove it later.
        """
        if word not in ("completed", "failed") or self._start is None:
            return
        if self._worker.run_child is not None:
            return  # a trial removes all that it has, and so does a worker of a shared store
        try:
            preparations = list(preparations_of(self._bundle.descriptor.policy.limits))
            if not preparations:
                return  # without another look at the journal
            end = self._journal.blobs.expand_record(self._journal.reread().end or {})
            result = end.get("result")
            if isinstance(result, Mapping) and result.get("success", True) is not False:
                for preparation in preparations:
                    preparation.conclude(self._performing().thread)
                return
            if word == "completed" and not isinstance(result, Mapping):
                return
            for preparation in preparations:
                preparation.release(
                    self._worker.store, self.thread, self._start, self._request.environment
                )
        except (UncagedError, OSError) as exc:
            self.info.note("8RM3XK5P", f"after its end: {exc}")

    def accept(self) -> None:
        """Accept the request: its resume record is on disk when this returns.

        Raises:
            RefusedError: the thread's state forbids it, perhaps because of a request that came
                first.
        """
        place = self._bundle.hash, self.thread
        accept(self._journal, self._worker.store, place, self._request.resume, self.now_ms())

    def close(self) -> None:
        """Close the journal, which releases its lock: from then on another process may own it."""
        self._journal.close()
        self.notify()

    def notify(self) -> None:
        """Notify of the statuses that were written. Called once the thread was left. Idempotent."""
        self._notes.send_kept()

    @property
    def doing(self) -> str | None:
        """Describe the effect under way, or return None."""
        command = self._doing
        if command is None or not self._queued:
            return _described(command) if command is not None else None
        return f"{_described(command)}, {'' if self._queued == 1 else f'{self._queued} '}queued behind other agents"

    @property
    def since_ms(self) -> int:
        """Return when the effect under way began, computed from a monotonic clock, so that setting
        the clock does not matter.
        """
        return (
            self.now_ms() - round((time.monotonic() - self._since_s) * 1000) if self._doing else 0
        )

    @property
    def queued(self) -> int:
        """Return how many agents of the effect wait for a free slot on this machine."""
        return self._queued

    @property
    def flushed_bytes(self) -> int:
        """Return the durable size of the journal."""
        return self._journal.flushed_bytes

    def has_same_request(self, resume: object) -> bool:
        """Tell whether the driver was started by an equal request: a client that lost the answer
        repeats its request.
        """
        return resume == self._request.resume

    def pause(self) -> None:
        """Stop before the next effect, or in one that supports a pause; the pause is on disk when
        this returns.

        Raises:
            NotFoundError: the thread was left just now.
        """
        with self._steering:
            self._require_driven()
            before = self._stop
            self._stop = (
                before or "pause"
                # before its line: an effect that begins after the line would not be the one in
                # flight
            )
            try:
                self._journal.append(lines.control("pause", {}, self.now_ms()))
                self._journal.flush()
            except (UncagedError, OSError) as exc:
                # the caller gets an error, so the thread must not stop later all the same
                self._stop = before
                if isinstance(exc, JournalBusy):
                    raise NotFoundError(str(exc)) from exc
                raise
        # last: an effect that is cancelled must find the pause on disk when its void is written
        self._cancel.pause()

    def hand_over(self) -> None:
        """Stop before the next effect, without a line: another worker goes on. Idempotent."""
        with self._steering:
            self._stop = self._stop or "leave"

    @property
    def only_waits(self) -> bool:
        """Whether the effect under way does nothing but wait, so that another worker can begin it
        again.
        """
        command = self._doing
        return command is not None and self._performing().only_waits(command.kind)

    def kill(self) -> None:
        """Stop now and cancel the effect under way. Raises: NotFoundError: the thread was left just
        now.
        """
        with self._steering:
            self._require_driven()
            self._stop = "kill"
        self._cancel.request()

    # under the same lock as `_leave`, so that a request is obeyed or refused, never lost (rule 3)
    def _require_driven(self) -> None:
        if self._left:
            raise NotFoundError(f"thread {self.thread} was left just now")

    def _leave(self, word: str) -> str:
        """Refuse pauses and kills from here on. A kill that arrived after the loop's last check is
        executed here.
        """
        with self._steering:
            self._left = True
        if self._stop != "kill" or word in lines.ENDS:
            return word
        journal = self._journal
        with suppress(UncagedError):  # a broken disk: the thread stays as it is
            # from the journal, not from memory: the loop's generator is gone
            pending = journal.reread().open
            if pending is not None:
                message = "killed as it was being left"
                journal.append(
                    lines.void(
                        pending.seq, "killed", message, {}, self.now_ms(), begun=pending.doubtful
                    )
                )
            usage = self.usage()
            journal.append(lines.end("killed", {"usage": usage} if usage else {}, self.now_ms()))
            journal.flush()
            return "killed"
        return word

    # The LoopContext: answers from memory.

    def now_ms(self) -> int:
        return self._worker.clock_ms()

    def stop_word(self) -> str | None:
        return self._stop

    def max_rounds(self) -> int:
        return self._max_rounds

    def max_steps(self) -> int:
        return self._max_steps

    def usage(self) -> Mapping[str, object]:
        return {} if self._spending is None else self._spending.document()

    def overspent(self) -> Mapping[str, object] | None:
        return None if self._spending is None else self._spending.exceeded()

    def refusal(self, kind: str) -> str | None:
        return refusal(self._bundle.descriptor.policy, kind)

    def rule(self, kind: str, body: object) -> Rule:
        return self._performing().rule(kind, body)

    def _drive_or_fail(self) -> str:
        # the bundle's fault ends the thread with a record; any other error leaves it as it is, so
        # that it can be resumed once the cause is gone
        try:
            return self._drive()
        except BundleTooSlow as exc:
            return self._end_too_slow(exc)
        except (ReplayError, BundleError) as exc:
            error = {"kind": _kind(exc), "message": str(exc)}
            self._append(lines.end("failed", {"error": error}, self.now_ms()), flush=True)
            return "failed"

    def _end_too_slow(self, slow: BundleTooSlow) -> str:
        """End at the limit of a computation, which `resume --bundle-time` raises."""
        journal = self._journal
        pending = journal.reread().open
        if pending is not None:
            journal.append(
                lines.void(
                    pending.seq, "limit", str(slow), {}, self.now_ms(), begun=pending.doubtful
                )
            )
        fields = {
            "limit": "bundleSeconds",
            "value": slow.limit_s,
            "message": str(slow),
            "usage": self.usage(),
        }
        self._append(lines.end("limit", fields, self.now_ms()), flush=True)
        return "limit"

    def _append(self, body: bytes, *, flush: bool) -> bytes:
        """Append a line; in front of a status that a person wants to know of, a note of that."""
        notification = self._notes.about(body, self.now_ms())
        if notification is None:
            return self._journal.append(body, flush=flush)
        self._journal.append(lines.notified(notification.event, notification.timestamp_ms))
        # crash here: a note without its status, which the next owner writes again with its own
        line = self._journal.append(body, flush=True)
        self._notes.keep(notification)
        return line

    def _drive(self) -> str:
        journal, bundle = self._journal, self._bundle
        history = journal.history
        start: Mapping[str, Any] = journal.blobs.expand_record(history.start)
        origin = journal.origin()
        if origin is not None:
            start = origin.start(start, history)
        self._start = self._notes.start = start
        # limits of another machine do not apply
        options = {} if "imported" in start else start["parameters"]["options"]
        own = {
            "maxJournalBytes": self._config.limits.max_journal_bytes,
            "bundleSeconds": self._config.limits.bundle_s,
        }
        self._limits = (
            own | {name: options[name] for name in LIMITS if name in options} | history.limits
        )
        self._max_rounds, self._max_steps = (
            int(self._limits["maxRounds"]),
            int(self._limits["maxSteps"]),
        )
        self._spending = Spending(
            limits=self._limits,
            before=history.spent.minus(history.inherited_spent),
            ran_s=history.ran_ms / 1000,
            cancel=self._cancel,
            written=journal.kept_bytes,
        )
        # a trusted bundle is not replayed, so it must be able to go on from its steps
        if (
            history.steps
            and (bundle.trusted or history.handed_over)
            and not bundle.descriptor.continues
        ):
            raise RefusedError(
                f"bundle {bundle.hash} cannot start from steps: its descriptor does not say `continues`"
            )
        self._observation = self._observed(start, history)
        self._performer = self._new_performer(start, self._spending)
        self._performer.restore(history, screenshots=options.get("screenshots") is True)
        session = self._new_session(start)
        try:
            reply = session.begin(history)
            return self._execute(reply, history, session)
        finally:
            session.close()

    def _observed(self, start: Mapping[str, Any], history: History) -> ThreadObservation | None:
        """Return the observation of the thread, if its caller asks for one."""
        observers = self._worker.observers
        if observers is None or not observed_variables(self._request.environment):
            return None
        observation = observers.observe(
            ObservedThread(
                thread_id=self.thread,
                hash=self._bundle.hash,
                start=start,
                steps=len(history.steps),
                has_roles=bool(self._bundle.descriptor.roles),
                config=self._config,
                environment=self._request.environment,
                interrupted=interrupted_try(history, self._found_line),
            ),
            self.info,
        )
        if observation is not None:
            self._journal.on_flush_time = observation.flushed
        return observation

    def _new_performer(self, start: Mapping[str, Any], spending: Spending) -> Performer:
        worker, request = self._worker, self._request
        return Performer(
            store=worker.store,
            bundle=self._bundle,
            config=self._config,
            thread=self.thread,
            journal=self._journal,
            start=start,
            environment=request.environment,
            directory=request.directory,
            cancel=self._cancel,
            spending=spending,
            progress=self._report_progress,
            handlers=worker.handlers,
            run_child=worker.run_child,
            agents=worker.agents,
            clock_ms=worker.clock_ms,
            notify=self._notes.send,
            observation=self._observation,
        )

    def _report_progress(self, fields: Mapping[str, object]) -> None:
        """Publish the progress of an effect and count its queued agents, under a lock because the
        parts of one effect report in parallel.
        """
        if isinstance(fields.get("queued"), bool):
            with self._counting:
                self._queued += 1 if fields["queued"] else -1
            if self._observation is not None:
                self._observation.queued(fields["queued"] is True)
        self._worker.publish(self.thread, {"progress": fields})

    @property
    def _is_timed(self) -> bool:
        return self._spending is not None and self._spending.timed

    def _timed(self, command: Write) -> bytes:
        """Add the running time where time is limited; not to steps, which the bundle gets: a replay
        on another machine would see another time.
        """
        spending = self._spending
        if spending is None or not spending.timed or lines.shape_of(command.body)[0] == "step":
            return command.body
        return lines.with_running_time(command.body, round(spending.running_s() * 1000))

    def _performing(self) -> Performer:
        if self._performer is None:
            raise EngineBug(f"thread {self.thread} performs before its journal was read")
        return self._performer

    def _new_session(self, start: Mapping[str, Any]) -> BundleSession:
        return BundleSession(
            cells=self._worker.cells,
            slot=self._slot,
            journal=self._journal,
            thread=self.thread,
            start=start,
            deadline_s=self._limits["bundleSeconds"],
            info=self.info,
            # a computation that may take longer than usual must not block other threads
            alone=self._limits["bundleSeconds"] > self._config.limits.bundle_s,
        )

    def _execute(self, reply: BundleReply, history: History, session: BundleSession) -> str:
        """Execute the loop's commands until it returns."""
        position = Position(
            steps=len(history.steps),
            rounds=history.rounds,
            pending=history.pending,
            answered=history.answer is not None,
        )
        loop = run_loop(position, reply, self)
        journal = self._journal
        lane = FastLane(
            context=self,
            journal=journal,
            ask=session.ask,
            perform=self._perform,
            clock_ms=self._worker.clock_ms,
        )
        answer: object = None
        while True:
            try:
                command: Command = loop.send(answer)
            except StopIteration as stop:
                return self._leave(str(stop.value))
            if type(command) is Ask and self._observation is not None:
                self._observation.step_written(command.seq, command.line)
            match command:
                case Write():
                    answer = self._append(self._timed(command), flush=command.flush)
                # each intent states how long the thread has run, which the fast lane does not write
                case Ask() if self._is_timed:
                    answer = StepProgress(session.ask(command.seq, command.line), command.seq)
                case Ask():
                    answer = lane.ask(command.seq, command.line)
                case Perform():
                    answer = self._perform(command)
                case Flush():
                    journal.flush()
                    answer = None
                case Spill():
                    answer = journal.blobs.spill(command.fields)

    def _perform(self, command: Perform) -> Outcome:
        # before `_doing`: an observer in another thread must not pair it with an older time
        self._since_s = time.monotonic()
        self._doing = command
        performer = self._performer or self._performing()
        outcome = performer.perform(command)
        self._doing = None
        return outcome


def _described(command: Perform) -> str:
    name = command.body.get("name") if isinstance(command.body, dict) else None
    return f"{command.kind} {name}" if isinstance(name, str) else command.kind


def _kind(exc: UncagedError) -> str:
    return "replay" if isinstance(exc, ReplayError) else "bundle"


def _ignore(_size: int) -> None:
    """Publish nothing: the thread was left."""
