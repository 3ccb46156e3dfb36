"""Shortcut for ordinary steps: one function call per command instead of one trip through the loop's generator.

The loop is the specification. For a step that it takes, the lane writes the same bytes, flushes, performs and asks at the same points; a
property test drives random histories through both and compares. Any other effect, and any other outcome than a plain answer, is left to
the loop: untouched, or performed and not yet written.

Rule 1: a step is ordinary if the loop would write a plain intent for it and perform it at once: no stop, limit, refusal, role or output.
Rule 2: nothing is checked here that the loop checks otherwise; a check that fails hands over, and the loop finds out why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..cells.reply import BundleReply
from ..door.outcomes import Answer, Outcome
from ..journal import lines
from ..journal.codec import CodecError, decode
from ..journal.journal import Journal
from .commands import Perform, StepProgress
from .loop import Desk, limit_reached

BY_LOOP = frozenset(("role", "output"))
"""Kinds that count as rounds; an output is not performed at all."""


class BundleSession(Protocol):
    """The bundle's side."""

    def ask(self, seq: int, line: bytes) -> BundleReply: ...


class FastLane:
    """Takes one thread's ordinary steps. Used by that thread's driver only."""

    def __init__(
        self, *, desk: Desk, journal: Journal, session: BundleSession, perform: Callable[[Perform], Outcome], clock_ms: Callable[[], int]
    ) -> None:
        """Args: perform: executes the loop's command of that name."""
        self._desk = desk
        self._journal = journal
        self._session = session
        self._perform = perform
        self._clock_ms = clock_ms

    def ask(self, seq: int, line: bytes) -> StepProgress:
        """Send the outcome of step *seq*, and finish the steps that follow as long as they are ordinary."""
        append, ask, clock_ms = self._journal.append, self._session.ask, self._clock_ms
        while True:
            # crash here: the fast lane's outcome on disk, not yet sent; replay sends it
            said = ask(seq, line)
            effect = self._ordinary(said, seq)
            if effect is None:
                return StepProgress(said, seq)
            intended_ms = clock_ms()
            append(lines.intent(seq + 1, said.body, intended_ms), flush=True)
            # crash here: the fast lane's intent is open, and whether it was performed is unknown
            outcome = self._perform(Perform(seq + 1, *effect, 1, intended_ms))
            if type(outcome) is not Answer or len(outcome.fields) != 1 or "outcome" not in outcome.fields:
                return StepProgress(said, seq, outcome)
            body = lines.step(seq + 1, outcome.fields, clock_ms())
            if len(body) > lines.SPILL_BYTES:
                return StepProgress(said, seq, outcome)
            seq, line = seq + 1, append(body)

    def _ordinary(self, said: BundleReply, steps: int) -> tuple[str, object] | None:
        """Return kind and body of an effect that nothing stands in the way of, or None."""
        desk = self._desk
        if said.word != "effect" or desk.stop_word() is not None or len(said.body) > lines.SPILL_BYTES:
            return None
        try:
            effect = decode(said.body)
        except CodecError:
            return None
        if type(effect) is not dict or len(effect) != 1:
            return None
        [(kind, body)] = effect.items()
        if kind in BY_LOOP or desk.refusal(kind) is not None or limit_reached(desk, kind, steps=steps, rounds=0) is not None:
            return None
        return kind, body
