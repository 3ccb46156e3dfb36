"""The step loop's order of things, with lists in place of files and processes."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from testbed.journals import Script, fields_of, records_of
from testbed.looping import Crash, EffectError, Table, answer_with_its_value
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.door.effects import Rule
from uncaged_engine.door.outcomes import Answer, Outcome, Void, Wait
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import blob_hash
from uncaged_engine.steps.commands import Ask, Flush, Perform, Spill, Write
from uncaged_engine.steps.loop import Position, run_loop

Flow = Generator[Any, Any, Any]


def two_effects() -> Flow:
    first = yield {"null": {"value": 1}}
    second = yield {"null": {"value": first + 1}}
    return {"success": True, "message": str(second)}


def one_output() -> Flow:
    step = yield {"output": {"role": "writer", "content": "hi", "meta": {"n": 1}}}
    return {"success": True, "message": f"{step['seq']} {step['by']}"}


def catching() -> Flow:
    try:
        yield {"null": {"fail": "no"}}
    except EffectError as exc:
        return {"success": False, "message": exc.error["message"]}


def written(table: Table) -> list[dict[str, Any]]:
    return [fields_of(record) for record in records_of(table.script.data)[1:]]


def order(table: Table) -> list[str]:
    """The commands as words; a write that is flushed has a star."""
    words = []
    for command in table.commands:
        match command:
            case Write(body, flush):
                words.append(lines.shape_of(body + b"}")[0] + ("*" if flush else ""))
            case Ask(seq) | Perform(seq):
                words.append(f"{type(command).__name__} {seq}")
            case _:
                words.append(type(command).__name__)
    return words


def test_one_flush_covers_an_outcome_and_the_next_intent() -> None:
    """Outcome n is a plain write, it is sent, intent n+1 follows it, and only then comes the flush,
    before anything is performed.
    """
    table = Table()
    assert table.play(two_effects) == "completed"
    assert order(table) == [
        "intent*",
        "Perform 1",
        "step",
        "Ask 1",
        "intent*",
        "Perform 2",
        "step",
        "Ask 2",
        "end*",
    ]
    assert written(table) == [
        {"seq": 1, "intent": {"null": {"value": 1}}},
        {"seq": 1, "outcome": 1},
        {"seq": 2, "intent": {"null": {"value": 2}}},
        {"seq": 2, "outcome": 2},
        {"end": "completed", "result": {"success": True, "message": "2"}},
    ]


def test_a_failure_is_flushed_before_it_is_thrown_in() -> None:
    """On the error path the outcome is on disk before the bundle hears of it."""
    table = Table()
    assert table.play(catching) == "completed"
    assert order(table) == ["intent*", "Perform 1", "step*", "Ask 1", "end*"]
    assert written(table)[1] == {"seq": 1, "error": {"kind": "null", "message": "no"}}
    assert written(table)[2]["result"]["message"] == "no"


def test_an_output_is_one_flushed_line() -> None:
    """A step that the bundle made itself has no intent and performs nothing; the bundle gets its
    record back.
    """
    table = Table()
    assert table.play(one_output) == "completed"
    assert order(table) == ["step*", "Ask 1", "end*"]
    assert written(table)[0] == {
        "seq": 1,
        "role": "writer",
        "content": "hi",
        "meta": {"n": 1},
        "by": "bundle",
    }
    assert written(table)[1]["result"]["message"] == "1 bundle"


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"role": "r"},
        {"role": "r", "content": "c", "meta": {}, "by": "me"},
        {"role": 1, "content": "c", "meta": {}},
        {"role": "r", "content": None, "meta": {}},
        {"role": "r", "content": "c", "meta": []},
        {"role": "r", "content": "x" * lines.SPILL_BYTES, "meta": {}},
        {"role": "r", "content": "é" * (lines.SPILL_BYTES // 2), "meta": {}},
    ],
)
def test_a_malformed_output_is_answered_with_an_error(body: object) -> None:
    """A malformed output becomes a failed step like any other effect's, with an intent that shows
    what was yielded; no effect is performed.
    """

    def run() -> Flow:
        try:
            yield {"output": body}
        except EffectError as exc:
            return exc.error["kind"]

    table = Table()
    assert table.play(run) == "completed"
    assert [word for word in order(table) if word != "Spill"] == [
        "intent*",
        "step*",
        "Ask 1",
        "end*",
    ]
    assert written(table)[-1]["result"] == "yield"
    assert table.performed == []


def test_a_malformed_output_is_taken_up_again_after_a_crash() -> None:
    """The intent of a malformed output is open after a crash; a second one, which no reader would
    accept, is not written.
    """

    def run() -> Flow:
        try:
            yield {"output": {"role": 5}}
        except EffectError as exc:
            return exc.error["kind"]

    table = Table(script=Script.begun().intent(1, {"output": {"role": 5}}))
    assert table.play(run) == "completed"
    assert table.history().damage is None
    assert [sorted(record)[0] for record in written(table)] == ["intent", "error", "end"]


def test_the_largest_output_fits_a_line() -> None:
    """An output up to the limit is in its line whole, whatever its characters."""
    frame = len('{"output":{"role":"r","content":"","meta":{}}}')
    content = "é" * ((lines.SPILL_BYTES - frame) // 2)

    def run() -> Flow:
        return len((yield {"output": {"role": "r", "content": content, "meta": {}}})["content"])

    table = Table()
    assert table.play(run) == "completed"
    assert len(table.script.sealed[1]) <= lines.MAX_LINE_BYTES
    assert written(table)[-1]["result"] == len(content)


def test_what_the_policy_lacks_is_refused_and_not_performed() -> None:
    """A refusal is a failure that the bundle may catch, and it names the kind."""
    table = Table(refused=frozenset({"null"}))
    assert table.play(catching) == "completed"
    assert table.performed == []
    assert written(table)[1] == {
        "seq": 1,
        "error": {"kind": "policy", "message": "null is not in the policy"},
    }


@pytest.mark.parametrize("kind", ["output", "role"])
def test_no_rounds_means_start_and_end_only(kind: str) -> None:
    """With maxRounds 0 the first step with a role ends the thread as `limit`, and no line is
    between start and end.
    """

    def run() -> Flow:
        yield {kind: {"role": "r", "content": "c", "meta": {}}}

    table = Table(rounds=0)
    assert table.play(run) == "limit"
    assert written(table) == [
        {
            "end": "limit",
            "limit": "maxRounds",
            "value": 0,
            "message": "the limit of 0 rounds is reached",
        }
    ]


def test_rounds_count_steps_with_a_role_and_steps_count_all() -> None:
    """Null effects are no rounds; the limit is checked before an intent, so it leaves nothing open;
    a higher one goes on.
    """

    def run() -> Flow:
        for number in range(3):
            yield {"null": {"value": number}}
            yield {"output": {"role": "r", "content": str(number), "meta": {}}}

    table = Table(rounds=2)
    assert table.play(run) == "limit"
    assert table.history().pending is None
    assert (table.history().rounds, len(table.history().steps)) == (2, 5)
    table.script.control("resume", maxRounds=3)
    table.rounds = 3
    assert table.play(run) == "completed"
    assert [seq for seq, _ in table.performed] == [1, 3, 5]
    few = Table(steps=4)
    assert few.play(run) == "limit"
    assert written(few)[-1] == {
        "end": "limit",
        "limit": "maxSteps",
        "value": 4,
        "message": "the limit of 4 steps is reached",
    }


def test_a_pause_stops_before_the_next_effect() -> None:
    """The lines so far are flushed, no intent follows, and the outcome in flight is kept."""
    table = Table(stops=lambda asked: "pause" if asked == 2 else None)
    assert table.play(two_effects) == "paused"
    assert order(table) == ["intent*", "Perform 1", "step", "Ask 1", "Flush"]
    assert table.flushed == len(table.script.sealed)
    table.stops = lambda _asked: None
    assert table.play(two_effects) == "completed"
    assert table.performed == [(1, 1), (2, 1)]


def test_a_kill_between_effects_ends_the_thread() -> None:
    """The end record is on disk; an open intent of an earlier owner is closed by a void first."""
    table = Table(stops=lambda _asked: "kill")
    assert table.play(two_effects) == "killed"
    assert written(table) == [{"end": "killed"}]
    reopened = Table(script=Script.begun().intent(1), stops=lambda _asked: "kill")
    assert reopened.play(two_effects) == "killed"
    assert [sorted(record)[0] for record in written(reopened)] == ["intent", "begun", "end"]
    assert reopened.history().open is None


@pytest.mark.parametrize(
    ("void", "left", "then"),
    [
        (Void(word="killed", message="stopped"), "killed", ["step", "void", "end*"]),
        (
            Void(word="limit", message="no money", more={"limit": "money", "value": 1}),
            "limit",
            ["step", "void", "end*"],
        ),
        (Void(word="environment", message="no key"), "paused", ["step", "void*"]),
    ],
)
def test_a_void_is_never_shown_to_the_bundle(void: Void, left: str, then: list[str]) -> None:
    """The intent is closed, the thread is left, and the next time the effect is asked for again as
    attempt 2.
    """
    table = Table(
        perform=lambda command: void if command.seq == 2 else Answer(fields={"outcome": 1})
    )
    assert table.play(two_effects) == left
    assert [word for word in order(table) if word[:4] in ("step", "void", "end*")] == then
    assert table.flushed == len(table.script.sealed)
    table.script.control("resume")
    table.perform = lambda _command: Answer(fields={"outcome": 2})
    assert table.play(two_effects) == "completed"
    assert table.performed == [(1, 1), (2, 1), (2, 2)]
    assert table.history().damage is None


def test_waiting_for_a_person_leaves_the_intent_open() -> None:
    """A wait is a control line with what is asked; after the answer the effect is performed without
    another attempt line.
    """
    table = Table(perform=lambda _command: Wait(details={"question": "which?"}))
    assert table.play(two_effects) == "waiting"
    assert written(table)[-1] == {"control": "wait", "seq": 1, "question": "which?"}
    assert table.history().open is not None
    table.script.control("answer", value=41)
    table.perform = lambda _command: Answer(fields={"outcome": 41})
    assert table.play(two_effects) == "completed"
    assert "attempt" not in " ".join(order(table))


REOPENED = Script.begun().intent(1, {"null": {"value": 1}})


def reopened(rule: Rule, **more: Any) -> Table:
    script = Script(
        bundle=REOPENED.bundle,
        thread=REOPENED.thread,
        sealed=list(REOPENED.sealed),
        digest=REOPENED.digest,
    )
    return Table(script=script, rules={"null": rule}, **more)


@pytest.mark.parametrize("rule", ["repeat", "restore"])
def test_an_open_intent_that_may_be_repeated_is_performed_as_attempt_2(rule: Rule) -> None:
    """Never silently: an attempt line says so, and is on disk first."""
    table = reopened(rule)
    assert table.play(two_effects) == "completed"
    assert order(table)[:3] == ["attempt*", "Perform 1", "step"]
    assert table.performed == [(1, 2), (2, 1)]
    assert written(table)[1] == {"seq": 1, "attempt": 2, "because": "interrupted"}


def test_every_further_crash_counts() -> None:
    """The third owner performs attempt 3."""
    table = reopened("repeat")
    table.script.attempt(1, 2, because="interrupted")
    table.play(two_effects)
    assert table.performed[0] == (1, 3)


def test_an_open_intent_that_only_a_person_can_settle_is_left() -> None:
    """Nothing is performed; the thread says that it is unknown; redo performs it, as an attempt
    that says why.
    """
    table = reopened("ask")
    assert table.play(two_effects) == "unknown"
    assert table.performed == []
    assert written(table)[-1] == {"control": "unknown", "seq": 1}
    table.script.control("resume", redo=True)
    assert table.play(two_effects, redo=True) == "completed"
    assert table.performed == [(1, 2), (2, 1)]
    assert {"seq": 1, "attempt": 2, "because": "redo"} in written(table)


def test_a_skipped_effect_is_a_failure_for_the_bundle() -> None:
    """The bundle gets an error that it may have been performed, and may go on."""

    def run() -> Flow:
        try:
            yield {"null": {"value": 1}}
        except EffectError as exc:
            return exc.error["kind"]

    table = reopened("ask")
    assert table.play(run, skip=True) == "completed"
    assert table.performed == []
    assert written(table)[-1]["result"] == "skipped"


BEGUN = Void(word="killed", message="stopped")
UNBEGUN = Void(word="killed", message="stopped", begun=False)


def voided(*voids: Void) -> Table:
    """Return a thread whose first effect has the rule `ask` and was closed by these voids, each of
    another resume.
    """
    table = Table(rules={"null": "ask"})
    for void in voids:
        table.perform = lambda _command, void=void: void  # type: ignore[misc]  # a default is the usual way to bind it
        assert table.play(two_effects, redo=table.performed != []) == "killed"
    table.perform = answer_with_its_value
    table.script.control("resume")
    return table


def test_an_effect_that_a_kill_cut_off_waits_for_a_decision() -> None:
    """A begun effect of rule `ask` is not performed again after a void: no intent is written, and
    redo performs it as attempt 2.
    """
    table = voided(BEGUN)
    assert table.play(two_effects) == "unknown"
    assert [next(iter(set(record) - {"seq"})) for record in written(table)[-2:]] == [
        "control",
        "control",
    ]
    assert table.performed == [(1, 1)]
    assert table.play(two_effects, redo=True) == "completed"
    assert table.performed == [(1, 1), (1, 2), (2, 1)]


def test_an_effect_that_had_not_begun_needs_no_decision() -> None:
    """A void with begun: false lets `resume` perform the effect."""
    table = voided(UNBEGUN)
    assert table.play(two_effects) == "completed"
    assert table.performed == [(1, 1), (1, 2), (2, 1)]


def test_a_void_that_had_not_begun_hides_no_earlier_one_that_had() -> None:
    """The doubt about an effect stays until a person decides, however many voids follow."""
    script = (
        Script.begun()
        .intent(1)
        .void(1, begun=True)
        .end("killed")
        .control("resume")
        .intent(1)
        .void(1, begun=False)
        .end("killed")
    )
    table = Table(script=script.control("resume"), rules={"null": "ask"})
    assert table.play(two_effects) == "unknown"
    assert table.performed == []


def test_a_void_without_the_field_counts_as_begun() -> None:
    """Journals of engines that did not write `begun` are read on the safe side."""
    script = Script.begun().intent(1).void(1, begun=None).end("killed").control("resume")
    assert b"begun" not in script.data
    assert Table(script=script, rules={"null": "ask"}).play(two_effects) == "unknown"


@pytest.mark.parametrize("cut", ["crash", "kill", "void"])
def test_a_decision_holds_until_a_try_begins(cut: str) -> None:
    """Redo, then an interruption before the effect is performed: the next resume does not ask
    again.
    """
    table = reopened("ask")
    if cut == "crash":
        table.crash_at = 0
        with pytest.raises(Crash):
            table.play(two_effects, redo=True)
        table.crash_at = None
    elif cut == "kill":
        table.stops = lambda _asked: "kill"
        assert table.play(two_effects, redo=True) == "killed"
        assert written(table)[-2] == {
            "seq": 1,
            "void": "killed",
            "begun": False,
            "message": "killed before it was asked again",
        }
        table.stops = lambda _asked: None
    else:
        table.perform = lambda _command: UNBEGUN
        assert table.play(two_effects, redo=True) == "killed"
        table.perform = answer_with_its_value
    table.script.control("resume")
    assert table.play(two_effects) == "completed"
    assert [seq for seq, _ in table.performed] == ([1, 1, 2] if cut == "void" else [1, 2])


def test_a_decision_counts_for_one_try() -> None:
    """Redo, and the worker dies while the effect is performed again: the next resume asks again."""
    table = reopened("ask")

    def dies(_command: Perform) -> Outcome:
        raise Crash

    table.perform = dies
    with pytest.raises(Crash):
        table.play(two_effects, redo=True)
    table.perform = answer_with_its_value
    table.script.control("resume")
    assert table.play(two_effects) == "unknown"
    assert len(table.performed) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_skip_holds_through_every_crash(place: int) -> None:
    """Skip, then a crash at any command before the step: the effect is skipped all the same, and
    never performed.
    """

    def run() -> Flow:
        try:
            yield {"null": {"value": 1}}
        except EffectError as exc:
            return exc.error["kind"]

    table = voided(BEGUN)
    table.crash_at = len(table.commands) + place
    with pytest.raises(Crash):
        table.play(run, skip=True)
    table.crash_at = None
    assert table.play(run) == "completed"
    assert written(table)[-1]["result"] == "skipped"
    assert table.performed == [(1, 1)]


def test_a_kill_of_an_unknown_effect_leaves_the_question() -> None:
    """The void that closes an intent which a crash left open says that the effect may have been
    performed.
    """
    table = reopened("ask", stops=lambda _asked: "kill")
    assert table.play(two_effects) == "killed"
    assert written(table)[-2]["begun"] is True
    table.stops = lambda _asked: None
    table.script.control("resume")
    assert table.play(two_effects) == "unknown"


def test_a_refused_effect_needs_no_decision() -> None:
    """An effect that the policy refuses was never performed, whatever a crash left open."""

    def run() -> Flow:
        try:
            yield {"null": {"value": 1}}
        except EffectError as exc:
            return exc.error["kind"]

    table = reopened("ask", refused=frozenset({"null"}))
    assert table.play(run) == "completed"
    assert written(table)[-1]["result"] == "policy"


def test_a_person_s_word_counts_for_the_open_effect_only() -> None:
    """redo and skip do not reach the effects after it."""
    table = reopened("ask")

    def run() -> Flow:
        try:
            yield {"null": {"value": 1}}
        except EffectError:
            return (yield {"null": {"value": 7}})

    assert table.play(run, skip=True) == "completed"
    assert table.performed == [(2, 1)]
    assert written(table)[-1]["result"] == 7


def test_another_effect_than_the_open_one_stops_the_thread() -> None:
    """The message shows both sides; nothing is performed."""
    table = Table(script=Script.begun().intent(1, {"null": {"value": "other"}}))
    assert table.play(two_effects) == "failed"
    error = written(table)[-1]["error"]
    assert error["kind"] == "replay"
    assert (
        error["message"]
        == 'step 1: the journal holds {"null":{"value":"other"}}, the bundle now yields {"null":{"value":1}}'
    )
    assert table.performed == []


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"b":2}',
        b"{}",
        b"[]",
        b"7",
        b'{"null": {}}',
        b'{"a":1,"a":2}',
        b"\xff",
        b"[" * 100 + b"]" * 100,
    ],
)
def test_what_is_no_effect_fails_the_thread(raw: bytes) -> None:
    """Exactly one key, canonical JSON; whatever else the process behind the pipe says ends its
    thread and nothing more.
    """
    table = Table()
    loop = run_loop(Position(steps=0, rounds=0), BundleReply("effect", raw), table)
    command = next(loop)
    assert isinstance(command, Write)
    assert command.flush
    error = json.loads(command.body + b"}")["error"]
    assert error["kind"] == "yield"
    assert error["message"].startswith("step 1: ")


def test_an_uncaught_error_fails_the_thread() -> None:
    """The end record has the error's type and message."""

    def run() -> Flow:
        yield {"null": {"value": 1}}
        raise ValueError("boom")

    table = Table()
    assert table.play(run) == "failed"
    assert written(table)[-1] == {
        "end": "failed",
        "error": {"kind": "bundle", "type": "ValueError", "message": "boom", "trace": ""},
    }


@pytest.mark.parametrize(
    "body",
    [
        b'{"harness":1,"kind":"replay","message":"x"}',
        b"[1]",
        b"\xff",
        b'"' + b"x" * (1 << 20) + b'"',
    ],
)
def test_whatever_a_raise_says_is_only_a_message(body: bytes) -> None:
    """Strange keys, no mapping, no JSON, a megabyte: the end record is small and says that the
    bundle failed.
    """
    loop = run_loop(Position(steps=0, rounds=0), BundleReply("raise", body), Table())
    command = next(loop)
    assert isinstance(command, Write)
    assert json.loads(command.body + b"}")["error"]["kind"] == "bundle"
    assert len(command.body) <= lines.SPILL_BYTES + 100


def test_a_result_that_is_no_json_fails_the_thread() -> None:
    """The child encodes what run() returned; bytes that are no canonical JSON never become a
    result.
    """
    loop = run_loop(Position(steps=0, rounds=0), BundleReply("return", b"{1:2}"), Table())
    command = next(loop)
    assert isinstance(command, Write)
    assert json.loads(command.body + b"}")["error"]["kind"] == "yield"


def test_what_is_too_large_for_a_line_goes_to_a_blob_first() -> None:
    """Effect, outcome and result: the blob is made durable before the line that names it, and the
    bundle sees the whole.
    """
    big = "b" * (lines.SPILL_BYTES + 1)

    def run() -> Flow:
        answer = yield {"null": {"value": big}}
        return {"data": answer}

    table = Table()
    assert table.play(run) == "completed"
    assert order(table) == [
        "Spill",
        "intent*",
        "Perform 1",
        "Spill",
        "step",
        "Ask 1",
        "Spill",
        "end*",
    ]
    names = [record["blob"]["hash"] for record in written(table)]
    assert [len(table.blobs[name]) for name in names] == [
        len(big) + 21,
        len(big) + 2,
        len(big) + 11,
    ]
    assert all(blob_hash(data) == name for name, data in table.blobs.items())
    assert max(map(len, table.script.sealed)) < 1000
    spills = [command for command in table.commands if isinstance(command, Spill)]
    assert list(spills[0].fields) == ["intent"]


def test_an_outcome_that_is_too_large_even_then_is_an_error() -> None:
    """Two fields of a megabyte each: one blob to a line, so the bundle hears that it is too large,
    and the line stays below its cap.
    """

    def run() -> Flow:
        try:
            yield {"null": {}}
        except EffectError as exc:
            return exc.error["kind"]

    big = {"role": "r", "content": "c" * (1 << 20), "meta": {"m": "m" * (1 << 20)}, "by": "agent"}
    table = Table(perform=lambda _command: Answer(fields=big))
    assert table.play(run) == "completed"
    assert written(table)[-1]["result"] == "effect"
    assert max(map(len, table.script.sealed)) <= lines.MAX_LINE_BYTES


def test_a_spilt_intent_is_taken_up_again() -> None:
    """After a crash the open intent is compared by its blob's hash."""
    effect = {"null": {"value": "b" * (lines.SPILL_BYTES + 1)}}

    def run() -> Flow:
        return len((yield effect))

    table = Table(crash_at=3)
    with pytest.raises(Crash):
        table.play(run)
    table.crash_at = None
    assert table.play(run) == "completed"
    assert table.performed == [(1, 1), (1, 2)]


def test_a_stop_is_looked_for_once_per_effect() -> None:
    """Two effects cost two looks, and without a stop the loop flushes only with a line."""
    table = Table()
    table.play(two_effects)
    assert table.asked == 2
    assert not any(isinstance(command, Flush) for command in table.commands)


def test_a_kill_that_comes_while_an_effect_is_given_up_is_not_lost() -> None:
    """The kill was acknowledged, so the thread ends as killed, not as paused."""
    table = Table(
        perform=lambda _command: Void(word="environment", message="paused"),
        stops=lambda asked: "kill" if asked > 1 else None,
    )
    assert table.play(two_effects) == "killed"
    assert written(table)[-1] == {"end": "killed"}


def test_an_effect_is_intended_once_however_often_it_is_performed() -> None:
    """After a crash, and after a void with a second intent, the handler hears the time of the first
    intent.
    """
    table = Table(perform=lambda _command: Void(word="killed", message="stopped"))
    assert table.play(two_effects) == "killed"
    first = json.loads(table.script.sealed[1])["timestamp"]
    table.script.control("resume")
    table.crash_at = len(table.commands) + 2
    with pytest.raises(Crash):
        table.play(two_effects)
    table.crash_at, table.perform = None, lambda _command: Answer(fields={"outcome": 1})
    assert table.play(two_effects) == "completed"
    assert [attempt for seq, attempt in table.performed if seq == 1] == [1, 2, 3]
    assert set(table.intended[:3]) == {first}
    assert table.intended[3] > first
