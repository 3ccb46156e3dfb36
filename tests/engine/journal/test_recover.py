"""A journal's bytes become its thread's history, up to the first line that does not belong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testbed.journals import BUNDLE, NOW_MS, THREAD, Script
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import ThreadId, bundle_hash
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.recover import History, effect_marks, recover, recover_strictly

READERS = pytest.mark.parametrize("read", [recover, recover_strictly])
Read = Callable[..., History]


def history_of(script: Script, read: Read = recover) -> History:
    return read(script.data, script.bundle, script.thread)


def three_steps() -> Script:
    return Script.begun().done(1).output(2).done(3, error={"kind": "null", "message": "no"})


@READERS
def test_a_whole_journal_gives_its_steps(read: Read) -> None:
    """Finished steps are kept as the sealed lines they are; rounds counts those with a role."""
    script = three_steps()
    history = history_of(script, read)
    assert history.steps == [script.sealed[2], script.sealed[3], script.sealed[5]]
    assert (history.rounds, history.pending, history.end, history.damage) == (1, None, None, None)
    assert history.good_bytes == len(script.data)
    assert (history.lines, history.digest) == (6, script.digest)
    assert history.start["name"] == "demo"


@READERS
def test_an_intent_without_its_step_is_open(read: Read) -> None:
    """The last intent is pending, with its effect to the letter, its attempts and its sub-steps."""
    script = (
        Script.begun()
        .done(1)
        .intent(2, {"all": {"effects": []}})
        .attempt(2, 1, because="retry")
        .attempt(2, 1, answer="x")
    )
    script.step(2, sub=0, outcome=5)
    history = history_of(script, read)
    pending = history.open
    assert pending is not None
    assert (pending.seq, pending.effect, pending.mark) == (
        2,
        b'{"all":{"effects":[]}}',
        b'{"all":{"effects":[]}}',
    )
    assert pending.tries == 2, (
        "an attempt line with a reason is a try; one that records an answer is not"
    )
    assert pending.attempts == script.sealed[-3:-1]
    assert pending.subs == script.sealed[-1:]
    assert len(history.steps) == 1


@READERS
def test_a_void_closes_an_intent_without_answering_it(read: Read) -> None:
    """Nothing is open, the step is still due, and the next intent of the same seq counts as one
    more try.
    """
    script = Script.begun().intent(1).void(1, "environment", "no key")
    history = history_of(script, read)
    assert history.open is None
    assert history.lacking
    assert history.pending is not None
    assert history.pending.voided == "environment"
    again = history_of(script.control("resume").intent(1), read)
    assert again.open is not None
    assert again.open.tries == 2


@READERS
def test_a_step_clears_what_its_intent_left(read: Read) -> None:
    """After the outcome nothing is pending, waiting or unsettled any more."""
    script = Script.begun().intent(1).control("wait", question="?").control("answer", value="yes")
    assert history_of(script, read).answer == "yes"
    assert not history_of(script, read).waiting
    history = history_of(script.step(1), read)
    assert (history.pending, history.waiting, history.unsettled, history.answer) == (
        None,
        False,
        False,
        None,
    )


@READERS
@pytest.mark.parametrize("word", ["pause", "wait", "unknown"])
def test_controls_stay_in_force_until_a_resume(read: Read, word: str) -> None:
    """Pause, wait and unknown are on disk; `resume` takes them back, with its note and its raised
    limits.
    """
    script = Script.begun().intent(1).control(word)
    before = history_of(script, read)
    assert {"pause": before.paused, "wait": before.waiting, "unknown": before.unsettled}[word]
    after = history_of(script.control("resume", note="look again", maxRounds=20, maxSteps=30), read)
    assert not (after.paused or after.waiting or after.unsettled)
    assert (after.note, after.limits) == ("look again", {"maxRounds": 20, "maxSteps": 30})


@READERS
def test_a_note_is_kept_until_a_role_was_asked(read: Read) -> None:
    """A note is for the next prompt: a crash and another resume in between do not lose it, and
    effects of other kinds do not use it up.
    """
    script = Script.begun().control("resume", note="look again").done(1).control("resume")
    assert history_of(script, read).note == "look again"
    assert (
        history_of(
            script.intent(2, {"role": {"name": "r"}}).step(
                2, role="r", content="", meta={}, by="x"
            ),
            read,
        ).note
        is None
    )


@READERS
def test_pausing_a_thread_that_waits_leaves_it_paused(read: Read) -> None:
    """The last control counts: a waiting thread that is paused is paused."""
    history = history_of(Script.begun().intent(1).control("wait").control("pause"), read)
    assert (history.paused, history.waiting) == (True, False)


@READERS
def test_an_end_stands_until_a_resume(read: Read) -> None:
    """An end record counts until a resume follows it; a control of an unknown kind changes
    nothing.
    """
    script = three_steps().control("pause").end("limit", limit="maxRounds", value=1)
    assert history_of(script, read).end is not None
    assert not history_of(script, read).paused
    history = history_of(script.control("resume", maxRounds=5).control("note", text="hello"), read)
    assert history.end is None
    assert history.limits == {"maxRounds": 5}


@READERS
def test_steps_that_are_handed_over_stay_out_of_the_proof(read: Read) -> None:
    """A fork onto another hash replays only what was performed since; its inherited steps still
    count as steps and rounds.
    """
    source = {"threadId": str(THREAD), "hash": str(BUNDLE), "seq": 2, "chain": "", "handedOver": 2}
    whole = history_of(Script.begun(forkFrom=source).done(1).output(2).done(3), read)
    alone = history_of(
        Script.begun(forkFrom={**source, "handedOver": 0}).done(1).output(2).done(3), read
    )
    assert (whole.handed_over, whole.inherited, len(whole.steps), whole.rounds) == (2, 2, 3, 1)
    assert whole.effects.hexdigest() != alone.effects.hexdigest()
    assert (
        whole.effects.hexdigest()
        == history_of(
            Script.begun(forkFrom={**source, "seq": 0}).done(1).done(2).done(3), read
        ).effects.hexdigest()
    )


STRANGE: dict[str, Script] = {
    "a second start record": Script.begun().done(1).add(lines.start({}, 1)),
    "a step that skips one": Script.begun().done(1).output(3),
    "a step without its intent": Script.begun().step(1),
    "an intent that skips one": Script.begun().intent(2),
    "a second intent while the first is open": Script.begun().intent(1).intent(1),
    "an attempt of nothing": Script.begun().attempt(1, 2),
    "a void of nothing": Script.begun().done(1).void(1),
    "a step behind a void": Script.begun().intent(1).void(1).step(1),
    "a sub-step of nothing": Script.begun().step(1, sub=0, outcome=1),
    "an unknown shape": Script.begun().add(b'{"surprise":1'),
}


@READERS
@pytest.mark.parametrize("name", STRANGE)
def test_a_line_out_of_place_is_damage_although_it_is_sealed(read: Read, name: str) -> None:
    """A good seal alone does not make a line part of the history."""
    script = STRANGE[name]
    history = history_of(script, read)
    assert history.damage is not None
    assert history.damage.line == len(script.sealed)
    assert history.damage.offset == history.good_bytes == len(script.data) - len(script.sealed[-1])
    assert history.damage.reason


@READERS
def test_a_torn_tail_is_found_at_every_byte_of_the_last_two_records(read: Read) -> None:
    """Cut anywhere, the history is that of the whole lines, and the rest is a tail that may be
    cut.
    """
    script = Script.begun().done(1).done(2).done(3, {"null": {"value": 'é"\\n'}}, outcome="é\n")
    whole = [b"".join(script.sealed[:count]) for count in range(len(script.sealed) + 1)]
    for size in range(len(whole[-3]), len(whole[-1]) + 1):
        data = script.data[:size]
        history = read(data, BUNDLE, THREAD)
        good = max(len(part) for part in whole if len(part) <= size)
        assert history.good_bytes == good
        assert (history.damage is None) == (good == size)
        assert history.damage is None or (history.damage.tail and history.damage.offset == good)
        assert not history.corrupt


@READERS
@pytest.mark.parametrize("place", range(1, 9))
def test_a_flipped_byte_in_the_tail_is_cut_and_one_before_it_is_corrupt(
    read: Read, place: int
) -> None:
    """Damage in the last line is a tail. With a valid line behind it the thread is corrupt, and its
    earlier steps stay readable.
    """
    script = Script.begun().done(1).done(2).done(3).done(4)
    for at in (0, 8, len(script.sealed[place]) // 2, len(script.sealed[place]) - 5):
        line = bytearray(script.sealed[place])
        line[at] ^= 0x04
        data = b"".join([*script.sealed[:place], bytes(line), *script.sealed[place + 1 :]])
        history = read(data, BUNDLE, THREAD)
        assert history.good_bytes == len(b"".join(script.sealed[:place]))
        assert history.corrupt == (place < 8)
        assert history.damage is not None
        assert history.damage.line == place + 1


@READERS
def test_nul_fill(read: Read) -> None:
    """NULs, which a file system leaves of a write that never reached the disk, are a tail at the
    end and corrupt in the middle.
    """
    script = three_steps()
    for count in (1, 60, 4096):
        assert read(script.data + bytes(count), BUNDLE, THREAD).steps == history_of(script).steps
        damage = read(script.data + bytes(count) + b"\n", BUNDLE, THREAD).damage
        assert damage is not None
        assert damage.tail
    hole = bytearray(script.data)
    at = len(b"".join(script.sealed[:2]))
    hole[at + 2 : at + 20] = bytes(18)
    assert read(bytes(hole), BUNDLE, THREAD).corrupt


@READERS
def test_a_duplicated_line(read: Read) -> None:
    """A doubled line is a tail at the end, and corrupt before other lines."""
    script = three_steps()
    last = read(script.data + script.sealed[-1], BUNDLE, THREAD)
    assert last.damage is not None
    assert last.damage.tail
    assert last.steps == history_of(script).steps
    middle = b"".join([*script.sealed[:3], script.sealed[2], *script.sealed[3:]])
    assert read(middle, BUNDLE, THREAD).corrupt


@READERS
def test_a_gap(read: Read) -> None:
    """A line that is missing: corrupt if two lines or more follow; a single line behind a gap is a
    tail.
    """
    script = three_steps()
    for missing in range(1, 4):
        assert read(
            b"".join([*script.sealed[:missing], *script.sealed[missing + 1 :]]), BUNDLE, THREAD
        ).corrupt
    assert not read(b"".join([*script.sealed[:-2], script.sealed[-1]]), BUNDLE, THREAD).corrupt


@READERS
def test_a_foreign_line_in_the_middle_is_corrupt(read: Read) -> None:
    """A line that an editor added makes the journal corrupt: no line behind it is believed, and
    none is moved.
    """
    script = three_steps()
    for foreign in (b"\n", b"hello\n", b'{"control":"note"}\n'):
        assert read(
            b"".join([*script.sealed[:3], foreign, *script.sealed[3:]]), BUNDLE, THREAD
        ).corrupt


@READERS
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", bytes(4096), Script.begun().data[:-1], Script(digest=b"").data]
)
def test_without_a_start_record_there_is_nothing(read: Read, data: bytes) -> None:
    """The error names the thread and what can be done."""
    with pytest.raises(
        DamagedError, match=f"thread {THREAD}: the journal has no start record.*thread rm"
    ):
        read(data, BUNDLE, THREAD)


@READERS
def test_a_journal_under_another_name_is_not_believed(read: Read) -> None:
    """The chain is seeded by hash and thread: a renamed file has no start record."""
    data = three_steps().data
    with pytest.raises(DamagedError):
        read(data, bundle_hash(b"another"), THREAD)
    with pytest.raises(DamagedError):
        read(data, BUNDLE, ThreadId("0" * 26))


@READERS
def test_a_start_record_of_a_newer_format_is_refused(read: Read) -> None:
    """A journal that a later engine wrote is not guessed at."""
    script = Script.begun()
    newer = Script(digest=b"")
    newer = Script(digest=chain.seed(BUNDLE, THREAD)).add(
        script.sealed[0].replace(b'"format":1', b'"format":2').partition(b',"chain"')[0]
    )
    with pytest.raises(DamagedError):
        read(newer.data, BUNDLE, THREAD)


def test_strict_reading_refuses_a_sealed_line_that_is_no_canonical_json() -> None:
    """Fast reading trusts the chain; strict reading parses every line, so an edited and re-chained
    journal shows.
    """
    script = Script.begun().add(b'{"seq":1,"intent":{"null":{"a":1,"a":2}},"timestamp":1')
    assert history_of(script, recover).damage is None
    damage = history_of(script, recover_strictly).damage
    assert damage is not None
    assert "duplicate keys" in damage.reason


def test_effect_marks_show_what_each_step_answered() -> None:
    """Each step has one mark: the (last) intent's bytes, its blob's hash, or the output that the
    bundle made itself.
    """
    script = (
        Script.begun()
        .intent(1, {"null": {"value": 0}})
        .void(1)
        .control("resume")
        .done(1)
        .output(2, "r", "c", k=1)
    )
    script.add(lines.step(3, lines.spill({}, "intent", "ab" * 16, 600_000), 1)).step(3)
    assert effect_marks(script.data, 3) == [
        b'{"null":{"value":1}}',
        b'{"output":{"role":"r","content":"c","meta":{"k":1}}}',
        lines.blob_mark("ab" * 16),
    ]
    assert len(effect_marks(script.data, 2)) == 2


@READERS
def test_the_time_already_used_is_in_the_journal(read: Read) -> None:
    """The last line that states a running time counts, whatever the clock did; from there on the
    timestamps do, without idle time.
    """
    script = Script.begun()

    def ran(body: bytes, ran_ms: int) -> int:
        script.add(lines.with_running_time(body, ran_ms))
        return history_of(script, read).ran_ms

    effect = b'{"null":{"ranMs":99999999,"timestamp":5}}'
    assert history_of(script, read).ran_ms == 0
    assert ran(lines.intent(1, effect, NOW_MS + 1000), 900) == 900
    script.add(lines.step(1, {"outcome": {"ranMs": 7}}, NOW_MS + 3000))
    assert history_of(script, read).ran_ms == 2900, "a step states nothing; its timestamp counts"
    assert ran(lines.intent(2, effect, NOW_MS - 3_600_000), 3100) == 3100, "the clock was set back"
    script.add(lines.void(2, "killed", "", {}, NOW_MS - 3_599_500, begun=False)).add(
        lines.end("killed", {}, NOW_MS - 3_599_500)
    )
    script.add(lines.control("resume", {}, NOW_MS))
    assert history_of(script, read).ran_ms == 3600, (
        "the time in which no worker ran it does not count"
    )


@READERS
def test_a_fork_inherits_no_running_time(read: Read) -> None:
    """A copied line states what the source ran; the fork begins with nothing."""
    script = Script.begun(forkFrom={"seq": 1})
    script.add(lines.with_running_time(lines.intent(1, b'{"null":{}}', NOW_MS - 5000), 4000)).add(
        lines.step(1, {"outcome": 1}, NOW_MS - 1000)
    )
    assert history_of(script, read).ran_ms == 0


PARTS: dict[str, tuple[Callable[[Script], Script], frozenset[int] | None]] = {
    "a crash": (lambda s: s, None),
    "a void that names them": (lambda s: s.void(1, begun=True, parts=[1, 2]), frozenset({1, 2})),
    "two voids": (
        lambda s: (
            s.void(1, begun=True, parts=[1])
            .control("resume")
            .intent(1)
            .void(1, begun=True, parts=[2])
        ),
        frozenset({1, 2}),
    ),
    "a void that names none": (lambda s: s.void(1, begun=True), None),
    "a void of an older engine": (lambda s: s.void(1, begun=None), None),
    "one that names none, then one that does": (
        lambda s: s.void(1, begun=True).control("resume").intent(1).void(1, begun=True, parts=[2]),
        None,
    ),
    "a decision": (
        lambda s: s.void(1, begun=True, parts=[1]).control("resume", redo=True),
        frozenset(),
    ),
    "a decision, then another void": (
        lambda s: (
            s.void(1, begun=True, parts=[1])
            .control("resume", redo=True)
            .intent(1)
            .void(1, begun=True, parts=[2])
        ),
        frozenset({2}),
    ),
    "parts that are no numbers": (
        lambda s: s.add(
            b'{"seq":1,"void":"killed","begun":true,"parts":["x",true],"message":"","timestamp":1'
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_journal_tells_which_parts_may_have_been_performed(name: str) -> None:
    """Voids name the parts that had begun; what no void names counts as begun; a decision settles
    what was before it.
    """
    build, parts = PARTS[name]
    pending = recover(build(Script.begun().intent(1)).data, BUNDLE, THREAD).pending
    assert pending is not None
    assert (pending.doubtful, pending.doubtful_parts) == (parts != frozenset(), parts)


@pytest.mark.parametrize("number", range(1, 10))
def test_a_changed_line_among_plain_steps_is_found(number: int) -> None:
    """A changed character of any line ends the history in front of it, for both readers alike."""
    script = Script.begun()
    for seq in range(1, 5):
        script.done(seq)
    sealed = [*script.sealed]
    sealed[number - 1] = sealed[number - 1].replace(b"1", b"2", 1)
    data = b"".join(sealed)
    if number == 1:
        with pytest.raises(DamagedError):
            recover(data, BUNDLE, THREAD)
        return
    found, strict = (read(data, BUNDLE, THREAD) for read in (recover, recover_strictly))
    assert found.damage == strict.damage and found.damage is not None
    assert (found.damage.line, found.damage.tail) == (number, number == 9)
    assert found.good_bytes == sum(map(len, sealed[: number - 1]))
    assert (found.lines, found.digest) == (strict.lines, strict.digest)
    assert found.steps == strict.steps == [*script.sealed[2 : number - 1 : 2]]
    assert found.effects.digest() == strict.effects.digest()
