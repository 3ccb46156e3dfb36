"""Reader of a journal's bytes as the history of its thread: finished steps, the open effect, the
end, and how far the bytes are whole.

Two functions give the same history. `recover` trusts the chain (only our writer makes a line that
follows it) and cuts lines by position; `recover_strictly` parses every line. The first is for going
on, the second for proving.
"""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Mapping
from typing import Any, Literal, cast

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass, field

from . import chain, lines
from .blobs import effect_mark
from .codec import decode, encode
from .plain import PlainSteps, read_plain_steps
from .usage import NOTHING, Spent, usage_of

EFFECTS_DIGEST_BYTES = 16
LIMITS = (
    "maxRounds",
    "maxSteps",
    "maxCost",
    "maxTokens",
    "maxSeconds",
    "maxJournalBytes",
    "bundleSeconds",
)
_STRANGE = "a line of a kind that cannot be at this place"


@dataclass(slots=True, kw_only=True)
class Pending:
    """The last intent that no step closed.

    effect: its canonical bytes, or None if they are in a blob or only their digest was kept. mark:
    what the effects' digest covers of it.
    tries: number of tries so far. voided: the void that closed it, if one did (then it is not open,
    only unanswered).
    first: its first intent; a later one follows a void.
    attempts: sealed attempt lines. subs: sealed sub-step lines, by their place.
    decided: the last decision of a person, ``resume --redo`` or ``--skip``. tried: a try may have
    begun since then (or at all).
    begun: a try that a void closed had begun, and no decision followed. parts: which parts of it
    had; None: any of them. asked: its last void left the decision to a person, although it had not
    begun.
    """

    seq: int
    effect: bytes | None
    mark: bytes
    line: bytes
    first: bytes
    tries: int = 1
    voided: str | None = None
    attempts: list[bytes] = field(default_factory=list)
    subs: list[bytes] = field(default_factory=list)
    decided: Literal["redo", "skip"] | None = None
    tried: bool = True
    begun: bool = False
    parts: frozenset[int] | None = frozenset()
    asked: bool = False

    @property
    def intended_ms(self) -> int:
        """Return when it was first intended. A later owner's try has the same time, so that a wait
        does not begin anew after a crash.
        """
        return timestamp_ms(self.first)

    @property
    def doubtful(self) -> bool:
        """Tell whether it may have been performed, without an outcome, and no person decided about
        it since.
        """
        return self.begun or self._in_flight

    @property
    def doubtful_parts(self) -> frozenset[int] | None:
        """Return the parts of which the same is true; None: any part without an outcome, since a
        crash leaves no trace of which had begun.
        """
        return None if self._in_flight else self.parts

    @property
    def shown(self) -> bytes:
        """Return what the line holds of the effect, for people."""
        return lines.effect_of_intent(self.line) if lines.blob_of(self.line) is None else self.mark

    def finished_parts(self) -> frozenset[int]:
        """Return the parts that have an outcome."""
        return frozenset(map(lines.part_of, self.subs))

    def blob_name(self) -> str:
        """Return the hash of the blob with its effect. Raises: DamagedError: it is in none."""
        note = lines.blob_of(self.line)
        if note is None:
            raise DamagedError(f"step {self.seq}: its effect is not in the journal")
        return str(note["hash"])

    @property
    def _in_flight(self) -> bool:
        return self.voided is None and self.tried

    def try_again(self) -> None:
        """Note that a further try may have begun. A skipped effect is never tried."""
        self.tried = self.decided != "skip"

    def close(self, record: Mapping[str, Any]) -> None:
        """Apply a void. One that does not say whether the try had begun counts as begun: an unknown
        outcome is asked about, never assumed. One that had not begun hides no earlier one that had.
        """
        self.voided, self.asked = str(record["void"]), record.get("doubt") is True
        if record.get("begun") is False:
            return
        parts = record.get("parts")
        had = (
            frozenset(parts)
            if isinstance(parts, list) and all(type(part) is int for part in parts)
            else None
        )
        self.parts = None if had is None or self.parts is None else self.parts | had
        self.begun = True

    def decide(self, word: Literal["redo", "skip"]) -> None:
        """Apply a person's decision. It holds until a try begins, however often the thread is
        interrupted before.
        """
        self.decided, self.tried, self.begun, self.parts = word, False, False, frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Place and reason at which a journal stops being whole.

    tail: nothing valid follows, so the rest may be cut. sealed: the line follows the chain, so it
    was written like this.
    """

    offset: int
    line: int
    reason: str
    tail: bool
    sealed: bool = False


@dataclass(slots=True, kw_only=True)
class History:
    """Contents of a journal, up to its last whole line.

    steps: the sealed lines of finished steps, step 1 first.
    inherited: how many of the first steps were copied from another thread.
    handed_over: how many of the first steps the bundle gets as ``input.steps`` instead of replaying
    them (a fork onto another hash).
    effects: running hash over the effects that the other steps answered.
    limits: those that later `resume` controls raised. screenshots: whether one of them asked for
    pictures. end: the end record, unless a resume followed it.
    spent: usage by agents, voids included; inherited_spent: the part of it that was copied.
    idle_ms: time between an owner's last line and the resume that followed.
    paths: what each granted path was when the thread first used it.
    stated_ms: the running time that a line stated last, stated_at: that line's timestamp less
    idle_ms by then.
    notified: the status of which a person was notified last, unless the thread went on since.
    binding: what the last resume control with one bound an imported thread to; binding_at: the
    offset of that line (see `origin`).
    """

    start: Mapping[str, Any]
    good_bytes: int
    lines: int
    digest: bytes
    steps: list[bytes] = field(default_factory=list)
    effects: blake2b = field(default_factory=lambda: blake2b(digest_size=EFFECTS_DIGEST_BYTES))
    rounds: int = 0
    pending: Pending | None = None
    end: Mapping[str, Any] | None = None
    handed_over: int = 0
    inherited: int = 0
    paused: bool = False
    waiting: bool = False
    unsettled: bool = False
    limits: dict[str, float] = field(default_factory=dict)
    screenshots: bool = False
    spent: Spent = NOTHING
    inherited_spent: Spent = NOTHING
    idle_ms: int = 0
    stated_ms: int = 0
    stated_at: int = 0
    binding: Mapping[str, Any] | None = None
    binding_at: int = -1
    last_line: bytes = b""
    blob_bytes: int = 0
    note: str | None = None
    notified: str | None = None
    answer: object = None
    paths: dict[str, object] = field(default_factory=dict)
    damage: Damage | None = None

    @property
    def open(self) -> Pending | None:
        """Return the intent whose outcome is unknown, or None."""
        return (
            self.pending
            if self.pending is not None and self.pending.voided is None and self.end is None
            else None
        )

    @property
    def ran_ms(self) -> int:
        """Return how long the thread has run: its own last statement, made by a clock that is never
        set, and from there the difference of timestamps.
        """
        return self.stated_ms + max(0, timestamp_ms(self.last_line) - self.stated_at - self.idle_ms)

    @property
    def lacking(self) -> bool:
        return (
            self.pending is not None and self.pending.voided == "environment" and self.end is None
        )

    @property
    def corrupt(self) -> bool:
        return self.damage is not None and not self.damage.tail


def recover(data: bytes, bundle: BundleHash, thread: ThreadId) -> History:
    """Read a journal to go on with it.

    Raises:
        DamagedError: there is not even a start record.
    """
    return _read(data, bundle, thread, strict=False)


def recover_strictly(data: bytes, bundle: BundleHash, thread: ThreadId) -> History:
    """Read the same history, with every line parsed and checked."""
    return _read(data, bundle, thread, strict=True)


def extend(history: History, line: bytes) -> None:
    """Add the line that was just appended to a whole journal."""
    digest = chain.check(history.digest, line)
    if digest is None:
        raise DamagedError(f"a line that does not follow the journal's last one: {line[:80]!r}")
    _take(history, line)
    history.good_bytes += len(line)
    history.blob_bytes += lines.blob_bytes(line)
    history.lines += 1
    history.digest, history.last_line = digest, line


def _read(data: bytes, bundle: BundleHash, thread: ThreadId, *, strict: bool) -> History:
    previous = chain.seed(bundle, thread)
    history: History | None = None
    position = 0
    number = 0
    size = len(data)
    plainly = not strict
    while position < size:
        if plainly and history is not None and _is_between_steps(history):
            plain = read_plain_steps(data, position, previous, len(history.steps) + 1)
            plainly = plain is not None  # the damage is found line by line
            if plain is not None and plain.steps:
                _take_plain(history, plain)
                previous, position = plain.digest, plain.position
                number += 2 * len(plain.steps)
                continue
        after = data.find(b"\n", position) + 1
        line = data[position:after] if after else data[position:]
        digest = chain.check(previous, line) if after else None
        if digest is None:
            reason = (
                "the line does not follow the line before it"
                if after
                else "the last line has no end"
            )
            break
        try:
            # the chain proves that our writer made the line, not that nothing was sealed anew
            if strict:
                decode(line[:-1])
            if history is None:
                history = _begin(line, digest)
            else:
                history.good_bytes = position
                _take(history, line)
        except (ValueError, KeyError) as exc:
            reason = str(exc) or _STRANGE
            break
        history.last_line = line
        history.blob_bytes += lines.blob_bytes(line)
        previous = digest
        position = after
        number += 1
    if history is None:
        raise DamagedError(
            f"thread {thread}: the journal has no start record; nothing of it can be used, `thread rm {thread}` deletes it"
        )
    history.good_bytes, history.lines, history.digest = position, number, previous
    if position < size:
        # a tail is cut without a question, so it must hold nothing that can be a line of the thread
        tail = _only_repeats(data, position) or not chain.something_follows(
            data, position, previous
        )
        history.damage = Damage(
            offset=position, line=number + 1, reason=reason, tail=tail, sealed=digest is not None
        )
    return history


def _is_between_steps(history: History) -> bool:
    """Tell whether the next step is one of the thread's own, and none of its lines were read."""
    return history.pending is None and len(history.steps) >= max(
        history.handed_over, history.inherited
    )


def _take_plain(history: History, plain: PlainSteps) -> None:
    """Take plain steps as `_take` would line by line."""
    history.steps += plain.steps
    history.effects.update(b"".join(plain.effects))
    history.last_line = plain.steps[-1]
    history.answer = history.notified = None
    history.waiting = history.unsettled = False


def _begin(line: bytes, digest: bytes) -> History:
    record = decode(line[:-1])
    source = (record.get("forkFrom") or {}) if isinstance(record, dict) else None
    if (
        not isinstance(record, dict)
        or record.get("format") != lines.FORMAT
        or not isinstance(source, dict)
    ):
        raise ValueError("the first line is no start record of format 1")
    handed_over, inherited = int(source.get("handedOver", 0)), int(source.get("seq", 0))
    return History(
        start=record,
        good_bytes=len(line),
        lines=1,
        digest=digest,
        last_line=line,
        handed_over=handed_over,
        inherited=inherited,
        stated_at=int(record["timestamp"]),
    )


def _take(history: History, line: bytes) -> None:
    shape, seq = lines.shape_of(line)
    match shape:
        case "step":
            _take_step(history, line, seq)
        case "intent":
            _take_intent(history, line, seq)
        case "attempt":
            pending = _pending(history, seq)
            pending.attempts.append(line)
            # the search is for speed, the parsed record decides: a value may hold these bytes, too
            if b'"because":' in line and "because" in (record := _parsed(line)):
                pending.tries += 1
                pending.try_again()
                # of a try that failed; the usage of further answers is in the step's line already
                history.spent = history.spent.plus(usage_of(record))
        case "void":
            record = _parsed(line)
            _pending(history, seq).close(record)
            history.spent = history.spent.plus(record.get("usage"))
        case "control":
            _take_control(history, _parsed(line))
        case "end":
            history.end = _parsed(line)
            history.paused = history.waiting = history.unsettled = False
        case "start":
            raise ValueError("a second start record")
    if shape != "step" and (ran_ms := lines.running_time_of(line)) is not None:
        history.stated_ms, history.stated_at = ran_ms, timestamp_ms(line) - history.idle_ms


def _take_step(history: History, line: bytes, seq: int) -> None:
    key = lines.key_of_step(line)
    if key == b"sub":
        _pending(history, seq).subs.append(line)
        if b'"usage":' in line:
            history.spent = history.spent.plus(usage_of(_parsed(line)))
        return
    if seq != len(history.steps) + 1:
        raise ValueError(f"step {seq} follows step {len(history.steps)}")
    pending = history.pending
    if pending is not None and pending.voided is not None:
        raise ValueError(f"step {seq} after a void, without a new intent")
    # steps that the bundle got as input are not replayed, so their effects are not compared
    if seq > history.handed_over:
        history.effects.update(
            (effect_mark(output_effect(_parsed(line))) if pending is None else pending.mark) + b"\n"
        )
    history.steps.append(line)
    history.notified = None
    if key == b"role":
        history.rounds += 1
        history.note = None
    if b'"usage":' in line:
        history.spent = history.spent.plus(usage_of(_parsed(line)))
    # from here on it is this thread's own money and time: limits count only that
    if seq == history.inherited:
        history.inherited_spent = history.spent
        history.stated_ms, history.stated_at = 0, int(history.start["timestamp"])
    history.pending = history.answer = None
    history.waiting = history.unsettled = False


def _take_intent(history: History, line: bytes, seq: int) -> None:
    if seq != len(history.steps) + 1:
        raise ValueError(f"the intent of step {seq} follows step {len(history.steps)}")
    before = history.pending
    if before is not None and before.voided is None:
        raise ValueError(f"a second intent of step {seq}, while the first is open")
    effect, mark = _effect_and_mark(line)
    tries = before.tries + 1 if before else 1
    first = before.first if before else line
    history.pending = Pending(
        seq=seq, effect=effect, mark=mark, line=line, first=first, tries=tries
    )
    if before:
        pending = history.pending
        pending.attempts, pending.subs = before.attempts, before.subs
        pending.decided, pending.begun, pending.parts = before.decided, before.begun, before.parts
        pending.asked = before.asked
        pending.try_again()


def _effect_and_mark(line: bytes) -> tuple[bytes | None, bytes]:
    """Return the effect of an intent, None if the line does not hold it, and what the effects'
    digest covers of it.
    """
    effect, spilt = lines.effect_of_intent(line), lines.blob_of(line)
    if spilt is not None:
        return None, lines.blob_mark(str(spilt["hash"]))
    digest = lines.digest_of(effect)
    return (
        (effect, effect_mark(effect))
        if digest is None
        else (None, lines.blob_mark(str(digest["digest"])))
    )


def _take_control(history: History, record: Mapping[str, Any]) -> None:
    match record["control"]:
        case "pause":
            history.paused, history.waiting = True, False
        case "wait":
            history.waiting, history.answer = True, None
        case "answer":
            history.waiting, history.answer = False, record["value"]
            history.notified = None
        case "unknown":
            history.unsettled = True
        case "resume":
            _take_resume(history, record)
        case "paths":
            if not isinstance(record["paths"], dict):
                raise ValueError("paths are no mapping")
            history.paths = record["paths"] | history.paths  # the first use counts
        case "note":
            history.notified = record.get("notified", history.notified)
        case _:
            pass  # of a later version


def _take_resume(history: History, record: Mapping[str, Any]) -> None:
    history.end = history.notified = None
    history.paused = history.waiting = history.unsettled = False
    history.note = record.get("note", history.note)
    history.idle_ms += max(0, record["timestamp"] - timestamp_ms(history.last_line))
    if "binding" in record:
        _take_binding(history, record)
    history.screenshots |= record.get("screenshots") is True
    for name in LIMITS:
        if name in record:
            history.limits[name] = record[name]
    if history.pending is not None and (record.get("redo") or record.get("skip")):
        history.pending.decide("redo" if record.get("redo") else "skip")


def _take_binding(history: History, record: Mapping[str, Any]) -> None:
    """Go on with an imported thread as if it began here: limits, usage, time, paths, answer and
    note of the other machine do not count, since a stranger wrote them.
    """
    binding = record["binding"]
    if not isinstance(binding, dict):
        raise ValueError("a binding that is no mapping")
    history.binding, history.binding_at = binding, history.good_bytes
    history.limits = dict(binding.get("limits", {}))
    history.inherited_spent = history.spent
    history.stated_ms, history.stated_at = 0, record["timestamp"] - history.idle_ms
    history.answer, history.note, history.paths = None, record.get("note"), {}


def _pending(history: History, seq: int) -> Pending:
    if history.pending is None or history.pending.seq != seq:
        raise ValueError(f"a line of step {seq} without its intent")
    return history.pending


def timestamp_ms(line: bytes) -> int:
    at = line.rindex(b',"timestamp":') + len(b',"timestamp":')
    return int(line[at : line.index(b",", at)])


def _parsed(line: bytes) -> dict[str, Any]:
    return cast(dict[str, Any], decode(line[:-1]))


def output_effect(record: Mapping[str, object]) -> bytes:
    """Return the canonical effect of a step that the bundle made itself.

    Raises:
        ValueError: the step was not made by the bundle, so its intent is missing.
    """
    if record.get("by") != "bundle":
        raise ValueError("a step without its intent")
    return encode({"output": {key: record[key] for key in ("role", "content", "meta")}}).encode()


def effect_marks(data: bytes, count: int) -> list[bytes]:
    """Return the marks of the first *count* effects of a journal known to be whole, to show where a
    replay differs.
    """
    marks: list[bytes] = []
    last = b""
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        shape, seq = lines.shape_of(line)
        if shape == "intent":
            last = _effect_and_mark(line)[1]
        elif shape == "step" and not lines.is_sub_step(line):
            marks.append(last or effect_mark(output_effect(_parsed(line))))
            last = b""
            if seq == count:
                break
    return marks


def flushed_at_least(data: bytes) -> int:
    """Return how many bytes of a journal were flushed for certain: an effect is performed after its
    intent's flush, so a line behind an intent proves that flush.
    """
    size = start = 0
    after = -1
    while (end := data.find(b"\n", start) + 1) > 0:
        if after > 0:
            size, after = after, -1
        if start == 0:
            size = end  # the start record was made durable together with the file
        elif b'"intent":' in data[start : start + 40]:
            after = end
        start = end
    return size


def _only_repeats(data: bytes, position: int) -> bool:
    """Tell whether behind *position* there are only copies of lines before it: a doubled end, which
    loses nothing when it is cut.
    """
    before = set(data[:position].split(b"\n"))
    return all(line in before for line in data[position:].split(b"\n")[:-1])


def computed_ms(data: bytes) -> int:
    """Return how long the bundle computed in all, at most: the time from each step to the line that
    follows it, by their timestamps.
    """
    total, since = 0, None
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        if line.startswith(lines.NOTE):
            continue
        shape, _ = lines.shape_of(line)
        now = timestamp_ms(line)
        if since is not None and shape in ("intent", "step", "end"):
            total += max(0, now - since)
        since = (
            now
            if shape in ("start", "control") or (shape == "step" and not lines.is_sub_step(line))
            else None
        )
    return total


def recorded_effect(data: bytes, seq: int) -> bytes:
    """Return what a journal known to be whole holds of the effect of step *seq*, for people."""
    found = b""
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        shape, number = lines.shape_of(line)
        if number == seq and shape == "intent" and lines.blob_of(line) is None:
            found = lines.effect_of_intent(line)
        elif number == seq and shape == "step" and not found and lines.is_role_step(line):
            return output_effect(_parsed(line))
    return found
