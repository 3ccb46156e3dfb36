"""The step loop: a generator of commands that knows the order of things and touches nothing.

Rule 1: the bundle sees an outcome only after its line was written; the world sees the next effect only after the flush.
Rule 2: outcome n is a plain write; intent n+1 follows it, and one flush covers both.
Rule 3: a failed effect is an outcome like any other: written, then thrown in.
Rule 4: an intent is closed by exactly one step or one void; a void is never shown to the bundle.
Rule 5: limits are checked before an intent, so that a limit leaves nothing open.
Rule 6: an intent that a crash left open is treated as its handler declares: never silently twice.

Whoever executes the commands (`driver`, or a test with lists) sends back what each one came to.
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
    """Where a thread stands when the loop takes it up."""

    steps: int
    rounds: int
    pending: Pending | None = None
    answered: bool = False


class Desk(Protocol):
    """What the loop asks between effects; answers come from memory, never from the world."""

    def now_ms(self) -> int: ...
    def stop_word(self) -> str | None: ...
    def max_rounds(self) -> int: ...
    def max_steps(self) -> int: ...
    def usage(self) -> Mapping[str, object]: ...
    def overspent(self) -> Mapping[str, object] | None: ...
    def refusal(self, kind: str) -> str | None: ...
    def rule(self, kind: str, body: object) -> Rule: ...


class BadYield(Exception):
    """What the bundle yielded is no effect: its author's fault."""


def run_loop(position: Position, said: BundleReply, desk: Desk) -> Generator[Command, Any, str]:
    """Advance one thread until it ends or must be left.

    Returns:
        Why it was left: an end word, or paused, waiting, unknown.
    """
    rounds, pending = position.rounds, position.pending
    at = StepProgress(said, position.steps)
    while at.said.word == "effect":
        seq = at.seq + 1
        if at.outcome is None:
            stop = desk.stop_word()
            if stop is not None:
                return (yield from _stop(stop, pending, desk))
            turn = _Turn(seq=seq, rounds=rounds, raw=at.said.body, pending=pending, answered=position.answered)
            line = yield from _take(turn, desk)
        else:
            line = yield from _settle(seq, at.outcome, desk)
        if isinstance(line, str):
            return line
        pending = None
        rounds += lines.is_role_step(line)
        # crash here: outcome on disk, not yet sent; replay sends it
        at = yield Ask(seq, line)
    return (yield from _finish(at.said, desk))


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One effect: what was yielded, and what an earlier owner of the thread left open."""

    seq: int
    rounds: int
    raw: bytes
    pending: Pending | None
    answered: bool

    @property
    def reopened(self) -> bool:
        """An intent is open already: an earlier owner of the thread wrote it."""
        return self.pending is not None and self.pending.voided is None


def _take(turn: _Turn, desk: Desk) -> Generator[Command, Any, bytes | str]:
    """Bring one effect to its step.

    Returns:
        The sealed line to send into the bundle, or the word by which the thread is left.
    """
    try:
        kind, body = _effect(turn.raw)
    except BadYield as exc:
        return (yield from _fail(desk, {"kind": "yield", "message": f"step {turn.seq}: {exc}"}))
    if turn.pending is not None and turn.pending.mark != effect_mark(turn.raw):
        return (yield from _fail(desk, {"kind": "replay", "message": mismatch(turn.seq, turn.pending.shown, turn.raw)}))
    over = limit_reached(desk, kind, steps=turn.seq - 1, rounds=turn.rounds)
    if over is not None:
        if turn.pending is not None and turn.reopened:
            message = "a limit was reached before it was asked again"
            yield Write(lines.void(turn.seq, "limit", message, {}, desk.now_ms(), begun=turn.pending.doubtful))
        yield Write(_end(desk, "limit", over), flush=True)
        return "limit"
    if kind == "output":
        return (yield from _write_output(turn, body, desk))
    outcome = yield from _resolve(turn, kind, body, desk)
    if outcome is None:
        yield Write(lines.control("unknown", {"seq": turn.seq}, desk.now_ms()), flush=True)
        return "unknown"
    return (yield from _settle(turn.seq, outcome, desk))


def _settle(seq: int, outcome: Outcome, desk: Desk) -> Generator[Command, Any, bytes | str]:
    """Write what became of an effect; returns as `_take`."""
    match outcome:
        case Answer() | Failure():
            return (yield from _write_step(seq, outcome, desk))
        case Void():
            return (yield from _write_void(seq, outcome, desk))
        case Wait():
            yield Write(lines.control("wait", {"seq": seq, **outcome.details}, desk.now_ms()), flush=True)
            return "waiting"
        case _:
            assert_never(outcome)


def _effect(raw: bytes) -> tuple[str, object]:
    try:
        effect = decode(raw)
    except CodecError as exc:
        raise BadYield(f"the bundle yielded what is not an effect: {exc}") from exc
    if not isinstance(effect, dict) or len(effect) != 1:
        raise BadYield(f"an effect is a mapping with exactly one key, its kind; the bundle yielded {shown(raw)}")
    [(kind, body)] = effect.items()
    return kind, body


def limit_reached(desk: Desk, kind: str, *, steps: int, rounds: int) -> Mapping[str, object] | None:
    """Return the limit that forbids an effect of this kind, as the fields of an end record."""
    if desk.max_rounds() == 0 or (kind in ("role", "output") and rounds >= desk.max_rounds()):
        return {"limit": "maxRounds", "value": desk.max_rounds(), "message": reached(desk.max_rounds(), "round")}
    overspent = desk.overspent()
    if overspent is not None:
        return overspent
    if steps >= desk.max_steps():
        return {"limit": "maxSteps", "value": desk.max_steps(), "message": reached(desk.max_steps(), "step")}
    return None


def _resolve(turn: _Turn, kind: str, body: object, desk: Desk) -> Generator[Command, Any, Outcome | None]:
    """Write what has to stand before the effect, and perform it; None: only a person can say what became of it."""
    seq, pending = turn.seq, turn.pending
    intended_ms = desk.now_ms() if pending is None else pending.intended_ms
    refused = desk.refusal(kind)
    again = pending is not None and refused is None and not turn.answered
    rule = desk.rule(kind, body) if again and pending is not None and (pending.doubtful or pending.decided == "redo") else None
    if rule == "ask" and pending is not None and pending.doubtful:
        return None  # before a further intent: the question is about the one that stands there
    if not turn.reopened:
        yield from _write_intent(turn, kind, intended_ms if pending is None else desk.now_ms(), is_refused=refused is not None)
    if refused is not None:
        return Failure.of("policy", refused)
    if pending is not None and pending.decided == "skip":
        return Failure.of("skipped", f"step {seq} ({kind}) was skipped by a person; it may have been performed")
    attempt = 1 if pending is None else pending.tries + 1
    if pending is not None and turn.reopened and not turn.answered:
        because = "redo" if pending.decided == "redo" else "interrupted"
        yield Write(lines.attempt(seq, attempt, {"because": because}, desk.now_ms()), flush=True)
    # crash here: the intent is open, and whether it was performed is unknown
    performed: Outcome = yield Perform(seq, kind, body, attempt, intended_ms)
    return performed


def _write_intent(turn: _Turn, kind: str, now_ms: int, *, is_refused: bool) -> Generator[Command, Any, None]:
    """Write what was yielded; of a large effect that is refused only its digest, so that refusals fill no disk."""
    seq, raw = turn.seq, turn.raw
    if is_refused and len(raw) > lines.MARK_BYTES:
        yield Write(lines.step(seq, {"intent": lines.digested(kind, raw, blob_hash(raw))}, now_ms), flush=True)
    elif len(raw) > lines.SPILL_BYTES:
        spilt: Mapping[str, object] = yield Spill({"intent": decode(raw)})
        yield Write(lines.step(seq, spilt, now_ms), flush=True)
    else:
        yield Write(lines.intent(seq, raw, now_ms), flush=True)


def _write_output(turn: _Turn, body: object, desk: Desk) -> Generator[Command, Any, bytes]:
    """A finished step of the bundle's own: no intent, nothing to perform. A malformed one is answered with an error."""
    problem = _output_problem(body, len(turn.raw))
    if problem is not None or not isinstance(body, dict):
        if not turn.reopened:
            yield from _write_intent(turn, "output", desk.now_ms(), is_refused=True)
        line: bytes = yield Write(lines.step(turn.seq, {"error": {"kind": "yield", "message": problem}}, desk.now_ms()), flush=True)
        return line
    fields = {"role": body["role"], "content": body["content"], "meta": body["meta"], "by": "bundle"}
    line = yield Write(lines.step(turn.seq, fields, desk.now_ms()), flush=True)
    return line


def _output_problem(body: object, size_bytes: int) -> str | None:
    if not isinstance(body, dict) or set(body) != {"role", "content", "meta"}:
        return "an output has exactly the keys role, content and meta"
    if not (isinstance(body["role"], str) and isinstance(body["content"], str) and isinstance(body["meta"], dict)):
        return "an output's role and content are text, its meta is a mapping"
    if size_bytes > lines.SPILL_BYTES:
        return f"an output may be {lines.SPILL_BYTES} bytes long at most; this one has {size_bytes}"
    return None


def _write_step(seq: int, outcome: Answer | Failure, desk: Desk) -> Generator[Command, Any, bytes]:
    """Write the outcome; an answer waits for the next flush (rule 2), a failure is flushed at once."""
    fields = outcome.fields
    body = lines.step(seq, fields, desk.now_ms())
    if len(body) > lines.SPILL_BYTES:
        fields = yield from _spilt(fields)
        body = lines.step(seq, fields, desk.now_ms())
    if len(body) > lines.MAX_LINE_BYTES - lines.SEAL_ROOM_BYTES:
        message = f"the outcome is too large: {len(body)} bytes are left when its largest field stands by itself"
        fields = {"error": {"kind": "effect", "message": message}}
        body = lines.step(seq, fields, desk.now_ms())
    line: bytes = yield Write(body, flush="error" in fields)
    return line


def _spilt(fields: Mapping[str, object]) -> Generator[Command, Any, Mapping[str, object]]:
    spilt: Mapping[str, object] = yield Spill(fields)
    return spilt


def _write_void(seq: int, void: Void, desk: Desk) -> Generator[Command, Any, str]:
    flush = void.word == "environment"
    yield Write(lines.void(seq, void.word, void.message, void.more, desk.now_ms(), begun=void.begun, parts=void.parts), flush=flush)
    match void.word:
        case "environment" if desk.stop_word() == "kill":  # it came while the effect was on its way back
            yield Write(_end(desk, "killed", {}), flush=True)
            return "killed"
        case "environment":
            return "paused"
        case "killed":
            yield Write(_end(desk, "killed", {}), flush=True)
            return "killed"
        case "limit":
            yield Write(_end(desk, "limit", {**void.more, "message": void.message}), flush=True)
            return "limit"
        case _:
            assert_never(void.word)


def _stop(word: str, pending: Pending | None, desk: Desk) -> Generator[Command, Any, str]:
    if word == "kill":
        if pending is not None and pending.voided is None:
            message = "killed before it was asked again"
            yield Write(lines.void(pending.seq, "killed", message, {}, desk.now_ms(), begun=pending.doubtful))
        yield Write(_end(desk, "killed", {}), flush=True)
        return "killed"
    yield Flush()  # whoever asked for the pause wrote its line at once, so that it survives us
    return "paused"


def _finish(said: BundleReply, desk: Desk) -> Generator[Command, Any, str]:
    if said.word == "raise":
        return (yield from _fail(desk, {"kind": "bundle"} | _raised(said.body) | {"kind": "bundle"}))
    try:
        result = decode(said.body)
    except CodecError as exc:
        return (yield from _fail(desk, {"kind": "yield", "message": f"the bundle returned what is no JSON value: {exc}"}))
    ending: Mapping[str, object] = {"result": result}
    if len(said.body) > lines.SPILL_BYTES:
        ending = yield from _spilt(ending)
    yield Write(_end(desk, "completed", ending), flush=True)
    return "completed"


def _raised(body: bytes) -> dict[str, object]:
    """The fields of an uncaught error; whatever else the process behind the pipe says becomes a message."""
    try:
        error = decode(body, max_bytes=lines.SPILL_BYTES)
    except CodecError as exc:
        return {"message": f"an error that cannot be shown: {exc}"}
    return error if isinstance(error, dict) else {"message": str(error)}


def _end(desk: Desk, word: lines.EndWord, fields: Mapping[str, object]) -> bytes:
    """An end record, with what the thread used up, so that a listing need not read all of it."""
    usage = desk.usage()
    return lines.end(word, {**fields, "usage": usage} if usage else fields, desk.now_ms())


def _fail(desk: Desk, error: Mapping[str, object]) -> Generator[Command, Any, str]:
    yield Write(_end(desk, "failed", {"error": error}), flush=True)
    return "failed"
