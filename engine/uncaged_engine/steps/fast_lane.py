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
from .loop import LoopContext

BY_LOOP = frozenset(("role", "output"))
"""Kinds that count as rounds; an output is not performed at all."""
_ONLY_OUTCOME = {"outcome"}


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
        # a bundle's policy is part of its hash, so an answer about a kind holds for good
        self._kinds: set[str] = set()

    def ask(self, seq: int, line: bytes) -> StepProgress:
        """Send the outcome of step *seq*, and finish the next steps as long as they are
        ordinary.
        """
        context, journal, perform, clock_ms = (
            self._context,
            self._journal,
            self._perform,
            self._clock_ms,
        )
        max_steps = context.max_steps() if context.max_rounds() else 0
        while True:
            # crash here: the fast lane's outcome on disk, not yet sent; replay sends it
            reply = self._ask(seq, line)
            if (
                reply.word != "effect"
                or seq >= max_steps
                or context.stop_word() is not None
                or context.overspent() is not None
            ):
                return StepProgress(reply, seq)
            effect = self._permitted(reply.body)
            if effect is None:
                return StepProgress(reply, seq)
            # one clock reading: the line and the handler must agree on the time of the intent
            intended_ms = clock_ms()
            journal.append(lines.intent(seq + 1, reply.body, intended_ms), flush=True)
            # crash here: the fast lane's intent is open, and whether it was performed is unknown
            [(kind, body)] = effect.items()
            outcome = perform(Perform(seq + 1, kind, body, 1, intended_ms))
            if type(outcome) is not Answer or outcome.fields.keys() != _ONLY_OUTCOME:
                return StepProgress(reply, seq, outcome)
            step = lines.step(seq + 1, outcome.fields, clock_ms())
            # the loop builds the line again: spilling is rare, and is decided in one place
            if len(step) > lines.SPILL_BYTES:
                return StepProgress(reply, seq, outcome)
            seq, line = seq + 1, journal.append(step)

    def _permitted(self, raw: bytes) -> dict[str, object] | None:
        """Return an effect that the policy permits and that is no round, or None."""
        if len(raw) > lines.SPILL_BYTES:
            return None
        try:
            effect = decode(raw)
        except CodecError:
            return None
        # exact types: what JSON gives is nothing else, and `isinstance` costs a call
        if type(effect) is not dict or len(effect) != 1:
            return None
        [kind] = effect
        if kind not in self._kinds:
            if kind in BY_LOOP or self._context.refusal(kind) is not None:
                return None
            self._kinds.add(kind)
        return effect
