"""Replay of a journal in a bundle's process, with a proof that the bundle yields the recorded
effects.

The child gets the start and all outcomes, hashes every effect that it yields, and replies once. It
never sees the recorded effects, so an equal digest means equal effects. After a difference the
replay is repeated step by step, to show both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles.errors import ReplayError

from ..journal import lines
from ..journal.blobs import Blobs, effect_mark
from ..journal.codec import decode, encode
from ..journal.recover import History, computed_ms, effect_marks, recorded_effect
from .cell import Cell
from .reply import BundleReply, mismatch, shown


def start_body(start: Mapping[str, Any], steps: list[bytes]) -> bytes:
    """Build the request body that starts a generator.

    Args:
        start: the (expanded) start record. steps: sealed lines of the steps that become
            ``input.steps``.
    """
    parameters = start["parameters"]
    options = parameters["options"]
    handed = [_shown(line) for line in steps]
    return encode(
        {
            "input": {
                "prompt": parameters["prompt"],
                "params": parameters["params"],
                "steps": handed,
            },
            "options": {name: options[name] for name in ("threadId", "startedAt", "seed")},
        }
    ).encode()


def _shown(line: bytes) -> dict[str, Any]:
    record = decode(line.rstrip(b"\n"))
    if not isinstance(record, dict):
        raise ReplayError(f"a step is not a mapping: {line[:80]!r}")
    # a fork's chain differs from its source's; the bundle's input must not
    record.pop("chain", None)
    return record


def replay_timeout_s(data: bytes, steps: int, deadline_s: float) -> float:
    """Compute the timeout of a replay in a cell of its own: one computation, and those that the
    journal records, doubled because this machine may be slower than it was.
    """
    return deadline_s + steps / 1000 + 2 * min(computed_ms(data) / 1000, deadline_s * steps)


class ReplayDifference(ReplayError):
    """First difference between a journal and the bundle.

    step: its number. recorded: the journal's effect. word, body: the bundle's reply (an effect, or
    its end).
    """

    def __init__(self, step: int, recorded: bytes, word: str, body: bytes) -> None:
        if word == "effect":
            super().__init__(mismatch(step, recorded, body))
        else:
            super().__init__(
                f"step {step}: the journal holds {shown(recorded)}, the bundle now ends with {word} {shown(body)}"
            )
        self.step = step
        self.recorded = recorded
        self.word = word
        self.body = body


class Replay:
    """One history, to be replayed in any cell.

    handed_over: number of steps that the generator gets as input; all of them for a trusted bundle,
    which is never replayed.
    """

    def __init__(
        self, history: History, start: Mapping[str, Any], blobs: Blobs, *, trusted: bool
    ) -> None:
        self._history = history
        self.handed_over = len(history.steps) if trusted else history.handed_over
        # a call for each line of all threads is a tenth of a check's time
        expanded = [
            blobs.expand(line) if lines.BLOB_KEY in line else line for line in history.steps
        ]
        self._start = start_body(start, expanded[: self.handed_over])
        self._outcomes = expanded[self.handed_over :]

    def run(
        self,
        cell: Cell,
        slot: int,
        *,
        deadline_s: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> BundleReply | None:
        """Replay all steps in slot *slot*.

        Args:
            meanwhile: called while the bundle works, if there is any step to replay.
        Returns:
            The reply after the last outcome, or None if the bundle yielded other effects than the
            journal holds.
        Raises:
            CellDied: as `Cell.ask`.
        """
        if not self._outcomes:
            reply = cell.ask("S", slot, 0, self._start, deadline_s=deadline_s)
            return reply if self._goes_on(reply) else None
        reply = cell.replay(
            slot, self._start, self._outcomes, deadline_s=deadline_s, meanwhile=meanwhile
        )
        same = (
            reply.digest == self._history.effects.hexdigest()
            and reply.seq == len(self._outcomes) + 1
        )
        return reply if same and self._goes_on(reply) else None

    def _goes_on(self, reply: BundleReply) -> bool:
        """Tell whether the next effect is that of the open intent, if the journal has one."""
        pending = self._history.pending
        return pending is None or (
            reply.word == "effect" and effect_mark(reply.body) == pending.mark
        )

    def run_stepwise(
        self,
        cell: Cell,
        slot: int,
        recorded: bytes,
        *,
        deadline_s: float,
        count: int | None = None,
    ) -> BundleReply:
        """Replay with one request per step, comparing each effect.

        Args:
            recorded: the journal's bytes, for the effects. count: how many steps; None for all.
        Raises:
            ReplayDifference: at the first difference, with both sides.
        """
        last = len(self._history.steps) if count is None else count
        marks = effect_marks(recorded, last)[self.handed_over : last]
        outcomes = self._outcomes[: last - self.handed_over]
        reply = cell.ask("S", slot, 0, self._start, deadline_s=deadline_s)
        for seq, (mark, line) in enumerate(zip(marks, outcomes, strict=True), start=1):
            number = seq + self.handed_over
            if reply.word != "effect" or effect_mark(reply.body) != _normalised(mark, reply.body):
                raise ReplayDifference(
                    number, recorded_effect(recorded, number) or mark, reply.word, reply.body
                )
            reply = cell.send_outcome(slot, seq, line, deadline_s=deadline_s)
        return reply


def _normalised(mark: bytes, yielded: bytes) -> bytes:
    """Return *mark*, or the yielded bytes if they are the same output with its keys in another
    order.
    """
    if mark.startswith(b'{"output":') and decode(mark) == decode(yielded):
        return effect_mark(yielded)
    return mark
