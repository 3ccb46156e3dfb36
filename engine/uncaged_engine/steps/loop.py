"""The step loop: a generator of commands that fixes the order of writes, flushes and effects,
without any I/O.

Rule 1: the bundle sees an outcome only after its line was written; the world sees the next effect
only after the flush.
Rule 2: outcome n is a plain write; intent n+1 follows it, and one flush covers both.
Rule 3: a failed effect is an outcome like any other: written, then thrown in.
Rule 4: an intent is closed by exactly one step or one void; a void is never shown to the bundle.
Rule 5: limits are checked before an intent, so that a limit leaves nothing open.
Rule 6: an intent that a crash left open is treated as its handler declares: never silently twice.

The driver (or a test with lists) executes each command and sends back its answer.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Protocol, assert_never

from uncaged_bundles.records import dataclass

from ..cells.reply import BundleReply, mismatch, shown
from ..door.effects import Rule
from ..door.outcomes import Answer, Failure, Outcome, Void, Wait
from ..journal import lines
from ..journal.blobs import blob_hash, effect_mark
from ..journal.codec import CodecError, decode
from ..journal.recover import Pending
from ..journal.usage import reached
from .commands import Ask, Command, Flush, Perform, Spill, StepProgress, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """State of a thread at the start of the loop."""

    steps: int
    rounds: int
    pending: Pending | None = None
    answered: bool = False


class LoopContext(Protocol):
    """State that the loop reads between effects, from memory, without I/O. Refusals and the limits
    of rounds and steps do not change while a thread is driven.
    """

    def now_ms(self) -> int: ...
    def stop_word(self) -> str | None: ...
    def max_rounds(self) -> int: ...
    def max_steps(self) -> int: ...
    def usage(self) -> Mapping[str, object]: ...
    def overspent(self) -> Mapping[str, object] | None: ...
    def refusal(self, kind: str) -> str | None: ...
    def rule(self, kind: str, body: object) -> Rule: ...


class BadYield(Exception):
    """The bundle yielded something that is not an effect; its author has to fix it."""


def run_loop(
    position: Position, reply: BundleReply, context: LoopContext
) -> Generator[Command, Any, str]:
    """Advance one thread until it ends or must be left.

    Returns:
        The reason: an end word, or paused, waiting, unknown; interrupted if another worker is to
        go on.
    """
    rounds, pending = position.rounds, position.pending
    at = StepProgress(reply, position.steps)
    while at.reply.word == "effect":
        seq = at.seq + 1
        if at.outcome is None:
            # only between effects: one that was performed gets its line before any stop
            stop = context.stop_word()
            if stop is not None:
                return (yield from _stop(stop, pending, context))
            effect = _Effect(
                seq=seq,
                rounds=rounds,
                raw=at.reply.body,
                pending=pending,
                answered=position.answered,
            )
            line = yield from _take(effect, context)
        else:
            # the fast lane wrote the intent and performed it: a second intent would be damage
            line = yield from _settle(seq, at.outcome, context)
        if isinstance(line, str):
            return line
        # of the first effect only: what an earlier owner left open is closed by this line
        pending = None
        rounds += lines.is_role_step(line)
        # crash here: outcome on disk, not yet sent; replay sends it
        at = yield Ask(seq, line)
    return (yield from _finish(at.reply, context))


@dataclass(slots=True, kw_only=True)
class _Effect:
    """One effect as yielded, with the open intent of an earlier owner of the thread."""

    seq: int
    rounds: int
    raw: bytes
    pending: Pending | None
    answered: bool

    @property
    def reopened(self) -> bool:
        """Tell whether an earlier owner of the thread left the intent open."""
        return self.pending is not None and self.pending.voided is None


def _take(effect: _Effect, context: LoopContext) -> Generator[Command, Any, bytes | str]:
    """Turn one effect into a finished step.

    Returns:
        The sealed line to send to the bundle, or the word with which the loop ends.
    """
    try:
        kind, body = _kind_and_body(effect.raw)
    except BadYield as exc:
        return (
            yield from _fail(context, {"kind": "yield", "message": f"step {effect.seq}: {exc}"})
        )
    # the replay compared the effects with outcomes; the open one has none, and is compared here
    if effect.pending is not None and effect.pending.mark != effect_mark(effect.raw):
        return (
            yield from _fail(
                context,
                {
                    "kind": "replay",
                    "message": mismatch(effect.seq, effect.pending.shown, effect.raw),
                },
            )
        )
    over = limit_reached(context, kind, steps=effect.seq - 1, rounds=effect.rounds)
    if over is not None:
        # rule 5, for an intent of an earlier owner: left open, it would be asked about for ever
        if effect.pending is not None and effect.reopened:
            message = "a limit was reached before it was asked again"
            yield Write(
                lines.void(
                    effect.seq,
                    "limit",
                    message,
                    {},
                    context.now_ms(),
                    begun=effect.pending.doubtful,
                )
            )
        yield Write(_end(context, "limit", over), flush=True)
        return "limit"
    if kind == "output":
        return (yield from _write_output(effect, body, context))
    outcome = yield from _resolve(effect, kind, body, context)
    if outcome is None:
        # a reader of the journal alone must see that the thread was left for a person to decide
        yield Write(lines.control("unknown", {"seq": effect.seq}, context.now_ms()), flush=True)
        return "unknown"
    return (yield from _settle(effect.seq, outcome, context))


def _settle(
    seq: int, outcome: Outcome, context: LoopContext
) -> Generator[Command, Any, bytes | str]:
    """Write the outcome of an effect; return as `_take`."""
    match outcome:
        case Answer() | Failure():
            return (yield from _write_step(seq, outcome, context))
        case Void():
            return (yield from _write_void(seq, outcome, context))
        case Wait():
            # the intent stays open: the answer belongs to it, in whichever process it arrives
            yield Write(
                lines.control("wait", {"seq": seq, **outcome.details}, context.now_ms()), flush=True
            )
            return "waiting"
        case _:
            assert_never(outcome)


def _kind_and_body(raw: bytes) -> tuple[str, object]:
    try:
        effect = decode(raw)
    except CodecError as exc:
        raise BadYield(f"the bundle yielded what is not an effect: {exc}") from exc
    if not isinstance(effect, dict) or len(effect) != 1:
        raise BadYield(
            f"an effect is a mapping with exactly one key, its kind; the bundle yielded {shown(raw)}"
        )
    [(kind, body)] = effect.items()
    return kind, body


def limit_reached(
    context: LoopContext, kind: str, *, steps: int, rounds: int
) -> Mapping[str, object] | None:
    """Return the limit that forbids an effect of this kind, as the fields of an end record. The
    order of the checks is part of the journal: the first limit is the one that the end names.
    """
    if context.max_rounds() == 0 or (kind in ("role", "output") and rounds >= context.max_rounds()):
        return {
            "limit": "maxRounds",
            "value": context.max_rounds(),
            "message": reached(context.max_rounds(), "round"),
        }
    overspent = context.overspent()
    if overspent is not None:
        return overspent
    if steps >= context.max_steps():
        return {
            "limit": "maxSteps",
            "value": context.max_steps(),
            "message": reached(context.max_steps(), "step"),
        }
    return None


def _resolve(
    effect: _Effect, kind: str, body: object, context: LoopContext
) -> Generator[Command, Any, Outcome | None]:
    """Write the intent or attempt, and perform the effect; None: only a person can tell whether it
    was performed.
    """
    seq, pending = effect.seq, effect.pending
    # the first intent's time, whatever became of it: deadlines count from there
    intended_ms = context.now_ms() if pending is None else pending.intended_ms
    # an effect that the policy refuses was never performed, so there is nothing to ask about it
    refused = context.refusal(kind)
    again = pending is not None and refused is None and not effect.answered
    rule = (
        context.rule(kind, body)
        if again and pending is not None and (pending.doubtful or pending.decided == "redo")
        else None
    )
    if rule == "ask" and pending is not None and pending.doubtful:
        return None  # without a further intent: the question is about the open one
    if not effect.reopened:
        yield from _write_intent(
            effect,
            kind,
            intended_ms if pending is None else context.now_ms(),
            is_refused=refused is not None,
        )
    # behind the intent: a failure is an outcome, and an outcome without an intent is damage
    if refused is not None:
        return Failure.of("policy", refused)
    if pending is not None and pending.decided == "skip":
        return Failure.of(
            "skipped", f"step {seq} ({kind}) was skipped by a person; it may have been performed"
        )
    attempt = 1 if pending is None else pending.tries + 1
    if pending is not None and effect.reopened and not effect.answered:
        # flushed before the try: the next owner must know that there may have been a second one
        because = "redo" if pending.decided == "redo" else "interrupted"
        yield Write(lines.attempt(seq, attempt, {"because": because}, context.now_ms()), flush=True)
    # crash here: the intent is open, and whether it was performed is unknown
    performed: Outcome = yield Perform(seq, kind, body, attempt, intended_ms)
    return performed


def _write_intent(
    effect: _Effect, kind: str, now_ms: int, *, is_refused: bool
) -> Generator[Command, Any, None]:
    """Write the effect as yielded; of a large one that is refused only its digest, so that refusals
    do not fill the disk.
    """
    seq, raw = effect.seq, effect.raw
    if is_refused and len(raw) > lines.MARK_BYTES:
        yield Write(
            lines.step(seq, {"intent": lines.digested(kind, raw, blob_hash(raw))}, now_ms),
            flush=True,
        )
    elif len(raw) > lines.SPILL_BYTES:
        spilt: Mapping[str, object] = yield Spill({"intent": decode(raw)})
        yield Write(lines.step(seq, spilt, now_ms), flush=True)
    else:
        yield Write(lines.intent(seq, raw, now_ms), flush=True)


def _write_output(
    effect: _Effect, body: object, context: LoopContext
) -> Generator[Command, Any, bytes]:
    """Write a step that the bundle made itself, without an intent; answer a malformed one with an
    error.
    """
    problem = _output_problem(body, len(effect.raw))
    if problem is not None or not isinstance(body, dict):
        # unlike a good output it is an error with an intent: the bundle did not make this step
        if not effect.reopened:
            yield from _write_intent(effect, "output", context.now_ms(), is_refused=True)
        line: bytes = yield Write(
            lines.step(
                effect.seq, {"error": {"kind": "yield", "message": problem}}, context.now_ms()
            ),
            flush=True,
        )
        return line
    fields = {
        "role": body["role"],
        "content": body["content"],
        "meta": body["meta"],
        "by": "bundle",
    }
    line = yield Write(lines.step(effect.seq, fields, context.now_ms()), flush=True)
    return line


def _output_problem(body: object, size_bytes: int) -> str | None:
    if not isinstance(body, dict) or set(body) != {"role", "content", "meta"}:
        return "an output has exactly the keys role, content and meta"
    if not (
        isinstance(body["role"], str)
        and isinstance(body["content"], str)
        and isinstance(body["meta"], dict)
    ):
        return "an output's role and content are text, its meta is a mapping"
    if size_bytes > lines.SPILL_BYTES:
        return f"an output may be {lines.SPILL_BYTES} bytes long at most; this one has {size_bytes}"
    return None


def _write_step(
    seq: int, outcome: Answer | Failure, context: LoopContext
) -> Generator[Command, Any, bytes]:
    """Write the outcome; an answer waits for the next flush (rule 2), a failure is flushed at
    once.
    """
    fields = outcome.fields
    body = lines.step(seq, fields, context.now_ms())
    if len(body) > lines.SPILL_BYTES:
        fields = yield from _spilt(fields)
        body = lines.step(seq, fields, context.now_ms())
    # many fields of half a blob each: one blob a line is all that readers put back
    if len(body) > lines.MAX_LINE_BYTES - lines.SEAL_ROOM_BYTES:
        message = f"the outcome is too large: {len(body)} bytes are left when its largest field is in a blob"
        fields = {"error": {"kind": "effect", "message": message}}
        body = lines.step(seq, fields, context.now_ms())
    line: bytes = yield Write(body, flush="error" in fields)
    return line


def _spilt(fields: Mapping[str, object]) -> Generator[Command, Any, Mapping[str, object]]:
    spilt: Mapping[str, object] = yield Spill(fields)
    return spilt


def _write_void(seq: int, void: Void, context: LoopContext) -> Generator[Command, Any, str]:
    # the others are followed by the thread's end, whose flush covers both
    flush = void.word == "environment" and not void.doubt
    yield Write(
        lines.void(
            seq,
            void.word,
            void.message,
            {**void.more, "doubt": True} if void.doubt else void.more,
            context.now_ms(),
            begun=void.begun,
            parts=void.parts,
        ),
        flush=flush,
    )
    match void.word:
        case "environment" if context.stop_word() == "kill":
            # the kill arrived while the effect returned
            yield Write(_end(context, "killed", {}), flush=True)
            return "killed"
        case "environment" if void.doubt:
            yield Write(lines.control("unknown", {"seq": seq}, context.now_ms()), flush=True)
            return "unknown"
        case "environment":
            return "paused"
        case "killed":
            yield Write(_end(context, "killed", {}), flush=True)
            return "killed"
        case "limit":
            yield Write(_end(context, "limit", {**void.more, "message": void.message}), flush=True)
            return "limit"
        case _:
            assert_never(void.word)


def _stop(word: str, pending: Pending | None, context: LoopContext) -> Generator[Command, Any, str]:
    if word == "kill":
        if pending is not None and pending.voided is None:
            message = "killed before it was asked again"
            yield Write(
                lines.void(
                    pending.seq, "killed", message, {}, context.now_ms(), begun=pending.doubtful
                )
            )
        yield Write(_end(context, "killed", {}), flush=True)
        return "killed"
    yield Flush()  # the pause line itself was flushed by `Driver.pause`
    return "interrupted" if word == "leave" else "paused"


def _finish(reply: BundleReply, context: LoopContext) -> Generator[Command, Any, str]:
    if reply.word == "raise":
        return (
            yield from _fail(context, {"kind": "bundle"} | _raised(reply.body) | {"kind": "bundle"})
        )
    try:
        result = decode(reply.body)
    except CodecError as exc:
        return (
            yield from _fail(
                context,
                {"kind": "yield", "message": f"the bundle returned what is no JSON value: {exc}"},
            )
        )
    ending: Mapping[str, object] = {"result": result}
    if len(reply.body) > lines.SPILL_BYTES:
        ending = yield from _spilt(ending)
    yield Write(_end(context, "completed", ending), flush=True)
    return "completed"


def _raised(body: bytes) -> dict[str, object]:
    """Parse an uncaught error; anything else from the process becomes the message."""
    try:
        error = decode(body, max_bytes=lines.SPILL_BYTES)
    except CodecError as exc:
        return {"message": f"an error that cannot be shown: {exc}"}
    return error if isinstance(error, dict) else {"message": str(error)}


def _end(context: LoopContext, word: lines.EndWord, fields: Mapping[str, object]) -> bytes:
    """Build an end record with the thread's usage, so that a listing reads only the tail."""
    usage = context.usage()
    return lines.end(word, {**fields, "usage": usage} if usage else fields, context.now_ms())


def _fail(context: LoopContext, error: Mapping[str, object]) -> Generator[Command, Any, str]:
    yield Write(_end(context, "failed", {"error": error}), flush=True)
    return "failed"
