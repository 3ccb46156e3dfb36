"""Truncation for forks: a fork starts after one of another thread's steps."""

from __future__ import annotations

import json

import pytest
from testbed.journals import BUNDLE, THREAD, Script, fields_of, records_of
from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, bundle_hash
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.recover import History, recover
from uncaged_engine.threads.cutting import Cut, copied_lines, fork_start, kept_steps, replacement_of

SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["good", "again"]}},
    "required": ["status"],
}
ROLES = {
    "reader": RoleSpec(
        name="reader", description="", system_prompt="", extract_prompt="", schema=SCHEMA
    )
}
FORK = ThreadId("01HX5WBE0000000000000000ZZ")
OTHER = bundle_hash(b"another version")


def source() -> Script:
    """Return a script of five steps with everything that may be between them."""
    script = Script.begun().output(1, "planner", k=1)
    script.intent(2).attempt(2, 1, because="retry").void(2, "environment", "no key").control(
        "resume"
    ).intent(2).step(2)
    script.output(3, "coder")
    script.control("pause").control("resume", maxRounds=7, note="hurry").done(
        4, error={"kind": "null", "message": "no"}
    ).output(5, "coder")
    return script.end("limit", limit="maxRounds", value=3).control("resume", maxRounds=9).intent(6)


def history_of(script: Script) -> History:
    return recover(script.data, script.bundle, script.thread)


def forked(script: Script, kept: int, target: BundleHash = BUNDLE) -> History:
    """The journal of a fork, read again."""
    begin = fork_start(
        json.loads(script.sealed[0]), history_of(script), kept, thread=FORK, target=target
    )
    line, digest = chain.seal(chain.seed(target, FORK), lines.start(begin, 7))
    found = recover(line + copied_lines(script.data, kept, digest), target, FORK)
    assert found.damage is None
    return found


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (Cut(), 4),
        (Cut(at=0), 0),
        (Cut(at=3), 3),
        (Cut(at=5), 5),
        (Cut(role="coder"), 3),
        (Cut(role="coder", last=True), 5),
        (Cut(role="planner"), 1),
    ],
)
def test_where_a_fork_cuts(cut: Cut, kept: int) -> None:
    """Plain drops the last step; a role keeps through its first or last step; a number keeps so
    many.
    """
    assert kept_steps(history_of(source()), cut, THREAD) == kept


def test_a_thread_without_steps_can_be_forked() -> None:
    """There is nothing to drop."""
    assert kept_steps(history_of(Script.begun()), Cut(), THREAD) == 0


@pytest.mark.parametrize("at", [-1, 6, 100])
def test_a_cut_outside_the_thread_is_refused(at: int) -> None:
    """The message says how many steps there are."""
    with pytest.raises(UsageError, match=f"has 5 whole steps; --at {at} is not among 0 to 5"):
        kept_steps(history_of(source()), Cut(at=at), THREAD)


def test_an_unknown_role_lists_the_roles_there_are() -> None:
    """The message lists each role once, in order of its first step."""
    with pytest.raises(NotFoundError, match=r"no step of role 'tester'; it has: planner, coder$"):
        kept_steps(history_of(source()), Cut(role="tester"), THREAD)
    with pytest.raises(NotFoundError, match="it has: none"):
        kept_steps(history_of(Script.begun()), Cut(role="x"), THREAD)


@pytest.mark.parametrize("kept", range(6))
def test_a_fork_s_steps_are_the_source_s_with_their_times(kept: int) -> None:
    """Sealed anew behind its own start record, nothing else changed; controls, ends and what comes
    later stay behind.
    """
    script = source()
    found = forked(script, kept)
    theirs = [
        fields_of(json.loads(line)) | {"timestamp": json.loads(line)["timestamp"]}
        for line in history_of(script).steps[:kept]
    ]
    ours = [
        fields_of(json.loads(line)) | {"timestamp": json.loads(line)["timestamp"]}
        for line in found.steps
    ]
    assert ours == theirs
    assert (found.end, found.pending, found.paused, found.limits, found.note) == (
        None,
        None,
        False,
        {},
        None,
    )


def test_a_fork_says_where_it_came_from() -> None:
    """Thread, hash, step and that step's chain: enough to see that the source is the one it was."""
    script = source()
    start = forked(script, 3).start
    line = history_of(script).steps[2]
    assert start["forkFrom"] == {
        "threadId": THREAD,
        "hash": BUNDLE,
        "seq": 3,
        "chain": json.loads(line)["chain"],
        "handedOver": 0,
    }
    assert (start["threadId"], start["hash"]) == (FORK, BUNDLE)
    assert start["parameters"] == json.loads(script.sealed[0])["parameters"], (
        "options are inputs of the bundle, its source's id included"
    )


def test_a_fork_onto_another_hash_hands_its_steps_over() -> None:
    """Other code cannot be replayed over these outcomes; it gets them as input."""
    found = forked(source(), 3, OTHER)
    assert (found.handed_over, found.inherited) == (3, 3)
    assert found.start["hash"] == OTHER


@pytest.mark.parametrize(("kept", "handed"), [(1, 1), (2, 2), (3, 2)])
def test_a_fork_of_a_fork_hands_over_no_more_than_its_source(kept: int, handed: int) -> None:
    """Steps that the source performed itself are replayed in its fork, too."""
    source_of_source = {"threadId": "x", "hash": "y", "seq": 2, "chain": "", "handedOver": 2}
    script = Script.begun(forkFrom=source_of_source).done(1).output(2).done(3).done(4)
    found = forked(script, kept)
    assert found.handed_over == handed
    if kept == 3:
        assert (
            found.effects.hexdigest()
            == recover(b"".join(script.sealed[:6]), BUNDLE, THREAD).effects.hexdigest()
        )


def test_the_source_is_only_read() -> None:
    """Copying takes bytes and returns bytes; unfinished sub-steps and open intents are not
    copied.
    """
    script = Script.begun().done(1).intent(2, {"all": {}}).step(2, sub=0, outcome=1)
    before = script.data
    assert records_of(copied_lines(script.data, 1, b"d" * 12))[-1]["outcome"] == 1
    assert len(records_of(copied_lines(script.data, 1, b"d" * 12))) == 2
    assert script.data == before


def test_sub_steps_belong_to_their_step() -> None:
    """The lines between an intent and its step come along, once the step is kept."""
    script = (
        Script.begun()
        .intent(1, {"all": {}})
        .step(1, sub=0, outcome=1)
        .step(1, sub=1, outcome=2)
        .step(1, outcome=[1, 2])
        .done(2)
    )
    assert len(records_of(copied_lines(script.data, 1, b"d" * 12))) == 4
    assert len(forked(script, 1).steps) == 1


def answered() -> History:
    """A role's step by an agent, one by the bundle itself, and one of another kind."""
    script = Script.begun().intent(1, {"role": {"name": "reader"}})
    script.step(
        1, role="reader", content="fine", meta={"status": "good"}, by="claude", usage={"turns": 1}
    )
    return history_of(script.output(2, "reader", status="made up").done(3))


def test_a_person_s_outcome_is_in_the_step() -> None:
    """A role's meta, or content and meta; what its agent used up is not used up again. Any value
    for another effect.
    """
    found = replacement_of({"status": "again"}, answered(), 1, ROLES)
    assert found == {
        "role": "reader",
        "content": "fine",
        "meta": {"status": "again"},
        "by": "claude",
    }
    assert replacement_of({"content": "no"}, answered(), 1, ROLES)["content"] == "no"
    assert replacement_of({"status": "whatever"}, answered(), 2, ROLES)["meta"] == {
        "status": "whatever"
    }
    assert replacement_of([7], answered(), 3, ROLES, {"null": {}}) == {"outcome": [7]}


@pytest.mark.parametrize(
    ("effect", "right", "wrong", "words"),
    [
        ({"now": {}}, 1, "noon", "'noon' is not of type 'integer'"),
        (
            {"http": {"url": "https://a.example"}},
            {"status": 200, "headers": {}, "url": "x"},
            {"text": "x"},
            "'status' is a required property",
        ),
        ({"script": {}}, None, {"stdout": 3}, "an effect 'script', whose outcome this cannot be"),
        (
            {"ask": {"question": "?", "schema": {"type": "integer"}}},
            4,
            "four",
            "'four' is not of type 'integer'",
        ),
        ({"ask": {"question": "?", "choices": ["a", "b"]}}, "a", "c", "'c' is not one of"),
        (
            {"all": {"effects": [{"now": {}}]}},
            [{"outcome": 1}],
            [],
            "is too short|should be non-empty",
        ),
        (
            {"all": {"effects": [{"now": {}}]}},
            [{"error": {"kind": "k", "message": "m"}}],
            [{"result": 1}],
            "'result' was unexpected",
        ),
        (
            {"flow": {"name": "x"}},
            {"success": True, "message": "", "data": None},
            {"message": ""},
            "'success' is a required property",
        ),
    ],
)
def test_an_outcome_that_the_effect_cannot_have_is_refused(
    effect: object, right: object, wrong: object, words: str
) -> None:
    """A replaced outcome has the shape that its kind of effect answers with, the question's own
    schema included.
    """
    if right is not None:
        assert replacement_of(right, answered(), 3, ROLES, effect) == {"outcome": right}
    with pytest.raises(UsageError, match=words):
        replacement_of(wrong, answered(), 3, ROLES, effect)


@pytest.mark.parametrize(
    ("value", "kept", "words"),
    [
        (7, 0, "no step whose outcome could be replaced"),
        (7, 1, "give its meta as a mapping"),
        ({"content": 7}, 1, "content is text"),
        (
            {"status": "bad"},
            1,
            "step 1 is one of reader, whose answer this cannot be: status: 'bad' is not one of",
        ),
        ({"meta": {}}, 1, "meta: 'status' is a required property"),
    ],
)
def test_what_the_role_could_not_have_answered_is_refused(
    value: object, kept: int, words: str
) -> None:
    """A replacement that the role's schema excludes is refused; the message names the violation."""
    with pytest.raises(UsageError, match=words):
        replacement_of(value, answered(), kept, ROLES)
