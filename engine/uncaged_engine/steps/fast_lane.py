"""Shortcut for ordinary steps: one function call per command instead of one trip through the loop's
generator.

The loop is the specification. For a step that it takes, the lane writes the same bytes, flushes,
performs and asks at the same points; a property test drives random histories through both and
compares. Any other effect, and any other outcome than a plain answer, is left to
the loop: untouched, or performed and not yet written.

Rule 1: a step is ordinary if the loop would write a plain intent for it and perform it at once: no
stop, limit, refusal, role or output.
Rule 2: the lane decides nothing. A check that fails hands the effect over, and the loop finds the
reason.
"""

from __future__ import annotations

from collections.abc import Callable

from ..cells.reply import BundleReply
from ..door.outcomes import Answer, Outcome
from ..journal import lines
from ..journal.codec import CodecError, decode
from ..journal.journal import Journal
from .commands import Perform, StepProgress
from .loop import LoopContext, limit_reached

BY_LOOP = frozenset(("role", "output"))
"""Kinds that count as rounds; an output is not performed at all."""


class FastLane:
    """Shortcut of one thread. Used by that thread's driver only."""

    def __init__(
        self,
        *,
        context: LoopContext,
        journal: Journal,
        ask: Callable[[int, bytes], BundleReply],
        perform: Callable[[Perform], Outcome],
        clock_ms: Callable[[], int],
    ) -> None:
        """Args: ask, perform: execute the loop's commands of these names."""
        self._context = context
        self._journal = journal
        self._ask = ask
        self._perform = perform
        self._clock_ms = clock_ms

    def ask(self, seq: int, line: bytes) -> StepProgress:
        """Send the outcome of step *seq*, and finish the next steps as long as they are
        ordinary.
        """
        append, send, clock_ms = self._journal.append, self._ask, self._clock_ms
        while True:
            # crash here: the fast lane's outcome on disk, not yet sent; replay sends it
            reply = send(seq, line)
            effect = self._ordinary(reply, seq)
            if effect is None:
                return StepProgress(reply, seq)
            # one clock reading: the line and the handler must agree on the time of the intent
            intended_ms = clock_ms()
            append(lines.intent(seq + 1, reply.body, intended_ms), flush=True)
            # crash here: the fast lane's intent is open, and whether it was performed is unknown
            outcome = self._perform(Perform(seq + 1, *effect, 1, intended_ms))
            if (
                type(outcome) is not Answer
                or len(outcome.fields) != 1
                or "outcome" not in outcome.fields
            ):
                return StepProgress(reply, seq, outcome)
            body = lines.step(seq + 1, outcome.fields, clock_ms())
            # the loop builds the line again: spilling is rare, and is decided in one place
            if len(body) > lines.SPILL_BYTES:
                return StepProgress(reply, seq, outcome)
            seq, line = seq + 1, append(body)

    def _ordinary(self, reply: BundleReply, steps: int) -> tuple[str, object] | None:
        """Return kind and body of an effect that may be performed at once, or None."""
        context = self._context
        if (
            reply.word != "effect"
            or context.stop_word() is not None
            or len(reply.body) > lines.SPILL_BYTES
        ):
            return None
        try:
            effect = decode(reply.body)
        except CodecError:
            return None
        # exact types: what JSON gives is nothing else, and `isinstance` costs a call
        if type(effect) is not dict or len(effect) != 1:
            return None
        [(kind, body)] = effect.items()
        if (
            kind in BY_LOOP
            or context.refusal(kind) is not None
            or limit_reached(context, kind, steps=steps, rounds=0) is not None
        ):
            return None
        return kind, body
