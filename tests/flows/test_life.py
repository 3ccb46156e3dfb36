"""Whole threads on real workers: run, pause, resume, kill, fork, answer, and the state after."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping

import pytest
from testbed.bundles import PLANNED, granted, source
from testbed.interleaving import just_before
from testbed.journals import records_of
from testbed.processes import end_workers
from testbed.steering import finish, intent_of, marks, settle, wait_for, written
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_engine import api
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.journal import lines

pytestmark = pytest.mark.slow

FOREVER = {"null": {"sleep_s": 600}}


def planned(
    engine: Engine, *plan: object, max_rounds: int | None = None, prompt: str = "go"
) -> ThreadId:
    """Start a thread that yields these effects."""
    granted(engine.store, PLANNED)
    return engine.run(
        "planned",
        prompt=prompt,
        params={"plan": list(plan)},
        options=RunOptions(max_rounds=max_rounds),
    )


def say(role: str = "writer", content: str = "text", **meta: object) -> Mapping[str, object]:
    return {"output": {"role": role, "content": content, "meta": meta}}


def null(**body: object) -> Mapping[str, object]:
    return {"null": body}


def test_a_thread_runs_to_its_result(engine: Engine) -> None:
    """Effects are answered, outputs come back as records, failures are thrown in, and the result is
    in the end record.
    """
    thread = planned(engine, null(value={"a": [1]}), say(k=1), null(fail="no"))
    assert finish(engine, thread)["data"] == [
        {"a": [1]},
        {"seq": 2, "role": "writer", "content": "text", "meta": {"k": 1}, "by": "bundle"},
        {"caught": {"kind": "null", "message": "no"}},
    ]
    assert engine.verify(thread).ok


def test_an_uncaught_error_fails_the_thread(engine: Engine) -> None:
    """A thread with an uncaught error ends as failed, with type and message, and offers `fork`, not
    `resume`.
    """
    thread = planned(engine, null(value=1), "raise")
    assert settle(engine, thread)["status"] == "failed"
    end = engine.thread(thread).end
    assert end is not None
    assert (end["error"]["type"], end["error"]["message"]) == ("ValueError", "as planned")
    assert engine.verify(thread).ok
    with pytest.raises(RefusedError, match=r"is failed: it cannot be resumed; `fork`"):
        engine.resume(thread)


def test_an_effect_outside_the_policy_is_refused_inside_the_bundle(engine: Engine) -> None:
    """The bundle catches it and goes on; nothing was performed."""
    thread = planned(engine, {"http": {"url": "http://example.org"}}, {"sleep": {"seconds": 0}})
    heard = finish(engine, thread)["data"]
    assert [one["caught"]["kind"] for one in heard] == ["policy", "policy"]


def test_a_pause_is_on_disk_and_survives_the_worker(engine: Engine) -> None:
    """A pause takes effect before the next effect; after the worker's death the thread is paused,
    not interrupted; resume goes on.
    """
    thread = planned(engine, *(null(value=n) for n in range(5000)))
    wait_for(engine, thread, intent_of(3))
    engine.pause(thread)
    status = settle(engine, thread)
    assert status["status"] == "paused"
    end_workers(engine.store.root)
    assert engine.thread(thread).summary.status == "paused"
    records = written(engine, thread)
    paused_at = next(
        number for number, record in enumerate(records) if record.get("control") == "pause"
    )
    assert sum("outcome" in record for record in records[paused_at:]) <= 1, (
        "only the effect in flight was finished"
    )
    engine.resume(thread)
    wait_for(engine, thread, intent_of(status["steps"] + 3))
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert engine.verify(thread).ok


def test_a_paused_thread_cannot_be_paused_nor_a_running_one_resumed(engine: Engine) -> None:
    """An error says the state; what ended can be neither paused nor killed."""
    thread = planned(engine, FOREVER)
    wait_for(engine, thread, intent_of(1))
    with pytest.raises(RefusedError, match="is running: it cannot be resumed"):
        engine.resume(thread)
    with pytest.raises(RefusedError, match="is running: it cannot be removed"):
        engine.remove_thread(thread)
    engine.kill(thread)
    settle(engine, thread)
    for act in (engine.pause, engine.kill):
        with pytest.raises(RefusedError, match=f"thread {thread} is killed: it cannot be"):
            act(thread)
    done = planned(engine)
    finish(engine, done)
    for refused in (engine.pause, engine.kill, engine.resume):
        with pytest.raises(RefusedError, match="is completed"):
            refused(done)


def test_a_killed_thread_goes_on_from_its_journal(engine: Engine) -> None:
    """The effect in flight is voided and asked again as attempt 2; what was finished is not
    performed again.
    """
    thread = planned(engine, null(value=1, mark=True), null(value=2, first_s=600, mark=True))
    wait_for(engine, thread, intent_of(2))
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert [record for record in written(engine, thread) if "void" in record] == [
        {
            "seq": 2,
            "void": "killed",
            "begun": True,
            "message": "the null effect was killed while it slept",
        }
    ]
    engine.resume(thread, note="now")
    assert finish(engine, thread)["data"] == [1, 2]
    assert marks(engine, thread) == [1, 2]
    assert engine.verify(thread).ok


def test_what_is_not_driven_is_steered_while_its_worker_drives_another(engine: Engine) -> None:
    """A paused thread of the same bundle can be killed, although the live worker does not have
    it.
    """
    other = planned(engine, FOREVER)
    wait_for(engine, other, intent_of(1))
    thread = planned(engine, null(lack="something"))
    assert settle(engine, thread)["status"] == "paused"
    engine.kill(thread)
    assert engine.thread(thread).summary.status == "killed"
    assert engine.thread(other).summary.status == "running"


def test_a_dead_worker_s_thread_is_interrupted_and_goes_on(engine: Engine) -> None:
    """A journal without a lock is never `running`. The open effect is performed as attempt 2, and a
    line says so.
    """
    thread = planned(engine, null(value=1), null(value=2, first_s=600))
    wait_for(engine, thread, intent_of(2))
    end_workers(engine.store.root)
    assert engine.thread(thread).summary.status == "interrupted"
    engine.resume(thread)
    assert finish(engine, thread)["data"] == [1, 2]
    assert {"seq": 2, "attempt": 2, "because": "interrupted"} in written(engine, thread)


@pytest.mark.parametrize(("word", "heard"), [("redo", 2), ("skip", {"caught": "skipped"})])
def test_what_only_a_person_can_settle_is_left_to_one(
    engine: Engine, word: str, heard: object
) -> None:
    """After a crash the thread is unknown; `resume` alone refuses and says how; redo performs it
    again, skip tells the bundle.
    """
    thread = planned(engine, null(value=1), null(value=2, rule="ask", first_s=600))
    wait_for(engine, thread, intent_of(2))
    end_workers(engine.store.root)
    assert engine.thread(thread).summary.status == "unknown"
    with pytest.raises(
        RefusedError,
        match=r"is unknown: step 2 \(null\) was begun .*; `resume --redo` .* `resume --skip`",
    ):
        engine.resume(thread)
    engine.resume(thread, redo=word == "redo", skip=word == "skip")
    found = finish(engine, thread)["data"][1]
    assert (found if word == "redo" else {"caught": found["caught"]["kind"]}) == heard
    assert engine.verify(thread).ok


def test_a_note_has_a_limit(engine: Engine) -> None:
    """A note goes into one line of the journal and into a prompt; the error says how much fits."""
    thread = planned(engine, null(lack="x"))
    settle(engine, thread)
    with pytest.raises(UsageError, match="at most 100,000 fit"):
        engine.resume(thread, note="n" * 100_001)
    assert engine.thread(thread).summary.status == "paused"


def test_redo_and_skip_exclude_each_other(engine: Engine) -> None:
    """A person says one of them."""
    with pytest.raises(UsageError, match="exclude each other"):
        engine.resume("latest", redo=True, skip=True)


def test_no_rounds_at_all(engine: Engine) -> None:
    """maxRounds 0 writes start and end only; a higher limit goes on."""
    thread = planned(engine, say(), max_rounds=0)
    assert settle(engine, thread)["status"] == "limit"
    assert [next(iter(record)) for record in written(engine, thread)] == ["end"]
    with pytest.raises(RefusedError, match=r"at its limit .* resume it with --max-rounds above 0"):
        engine.resume(thread)
    with pytest.raises(RefusedError):
        engine.resume(thread, options=RunOptions(max_rounds=0))
    engine.resume(thread, options=RunOptions(max_rounds=1))
    finish(engine, thread)


def test_rounds_are_limited_to_ten_unless_somebody_says_otherwise(engine: Engine) -> None:
    """The limit leaves nothing open, is no failure, and the raised one is on disk."""
    thread = planned(engine, *(say(n=n) for n in range(12)))
    assert settle(engine, thread) == {
        "status": "limit",
        "message": "the limit of 10 rounds is reached",
        "steps": 10,
    }
    engine.resume(thread, options=RunOptions(max_rounds=11))
    assert settle(engine, thread)["steps"] == 11
    engine.resume(thread, options=RunOptions(max_rounds=20))
    assert finish(engine, thread)["message"] == "12"
    assert engine.verify(thread).ok


def test_a_thread_can_be_resumed_the_moment_its_lock_is_free(engine: Engine) -> None:
    """A free lock means that no driver is still leaving: a resume at that moment is not lost."""
    thread = planned(engine, null(value=1, first_s=600), null(value=2, lack="something"))
    path = engine.store.data_path(engine.thread(thread).summary.hash, thread)
    wait_for(engine, thread, intent_of(1))
    engine.kill(thread)
    for _ in range(2):
        with path.open("r+b") as journal:
            # blocks until it is free
            fcntl.fcntl(
                journal,
                fcntl.F_OFD_SETLKW,
                struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0),
            )
        engine.resume(thread)
    assert finish(engine, thread)["data"] == [1, 2]


def test_a_lack_of_the_environment_pauses_the_thread(engine: Engine) -> None:
    """The bundle never hears of it; the listing says what is lacking; resume asks again as attempt
    2.
    """
    thread = planned(engine, null(value=1), null(value=2, lack="no key; set one"))
    assert settle(engine, thread) == {"status": "paused", "message": "no key; set one", "steps": 1}
    engine.resume(thread)
    assert finish(engine, thread)["data"] == [1, 2]


def test_a_thread_that_waits_for_a_person_goes_on_with_the_answer(engine: Engine) -> None:
    """Nothing runs meanwhile; the answer is checked against what was asked; resume is refused,
    answer is what continues it.
    """
    granted(engine.store, text := source("asking", _ASKING, policy={"ask": {}}))
    assert text
    thread = engine.run("asking", prompt="")
    assert settle(engine, thread)["status"] == "waiting"
    end_workers(engine.store.root)
    with pytest.raises(RefusedError, match=r"is waiting: it cannot be resumed; `answer`"):
        engine.resume(thread)
    for wrong, message in (("purple", "does not fit"), (None, "null cannot be an answer")):
        with pytest.raises(UsageError, match=message):
            engine.answer(thread, wrong)
    engine.answer(thread, "red")
    assert finish(engine, thread)["message"] == "red"
    with pytest.raises(RefusedError, match="is completed: it cannot be answered"):
        engine.answer(thread, "red")
    assert engine.verify(thread).ok


def test_an_answer_to_a_question_that_is_no_longer_asked_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two who answer at once one is heard; the other's answer is not taken for one to the next
    question.
    """
    granted(engine.store, source("asking-twice", _ASKING_TWICE, policy={"ask": {}}))
    thread = engine.run("asking-twice", prompt="")
    assert settle(engine, thread)["status"] == "waiting"

    def quicker() -> None:
        engine.answer(thread, "1")
        assert settle(engine, thread)["status"] == "waiting"

    just_before(monkeypatch, api, "check_answer", quicker)
    with pytest.raises(RefusedError, match="went on since"):
        engine.answer(thread, "2")
    engine.answer(thread, "3")
    assert finish(engine, thread)["message"] == "1 3"


_ASKING_TWICE = """
    first = yield {"ask": {"question": "which?"}}
    second = yield {"ask": {"question": "and then?"}}
    return {"success": True, "message": f"{first} {second}"}
"""

_ASKING = """
    colour = yield {"ask": {"question": "which?", "choices": ["red", "green"]}}
    return {"success": True, "message": colour}
"""


def test_forks(engine: Engine) -> None:
    """Plain drops the last step, --at and a role cut elsewhere; the source is untouched, the copied
    steps keep their times.
    """
    thread = planned(
        engine, say("planner", "a"), null(value=1), say("coder", "b"), say("coder", "c")
    )
    finish(engine, thread)
    before = engine.store.data_path(engine.thread(thread).summary.hash, thread).read_bytes()
    for cut, kept in (
        (Cut(), 3),
        (Cut(at=1), 1),
        (Cut(role="coder"), 3),
        (Cut(role="coder", last=True), 4),
        (Cut(at=0), 0),
    ):
        fork = engine.fork(thread, cut=cut)
        assert finish(engine, fork)["data"] == finish(engine, thread)["data"]
        view = engine.thread(fork)
        assert (view.start["forkFrom"]["threadId"], view.start["forkFrom"]["seq"]) == (thread, kept)
        source_steps = [
            record for record in engine.thread(thread).records if "intent" not in record
        ]
        assert [record for record in view.records if "intent" not in record][:kept] == source_steps[
            :kept
        ]
        assert engine.verify(fork).ok
    assert engine.store.data_path(engine.thread(thread).summary.hash, thread).read_bytes() == before
    with pytest.raises(NotFoundError, match="planner, coder"):
        engine.fork(thread, cut=Cut(role="tester"))


def test_a_fork_can_stay_paused(engine: Engine) -> None:
    """A fork can begin paused before its next effect, until a person resumes it."""
    thread = planned(engine, null(value=1), null(value=2))
    finish(engine, thread)
    fork = engine.fork(thread, start=False)
    assert engine.thread(fork).summary.status == "paused"
    engine.resume(fork)
    assert finish(engine, fork)["data"] == [1, 2]


SECOND = source(
    "planned",
    """
    inherited = [step["seq"] for step in input["steps"]]
    answer = yield {"null": {"value": "new"}}
    yield {"output": {"role": "r", "content": "", "meta": {}}}
    return {"success": True, "message": f"{inherited} {answer} {options['threadId']}"}
""",
)


def test_a_fork_onto_another_version_is_handed_its_steps(engine: Engine) -> None:
    """--on HASH or head: the kept steps are `input.steps`, the rest runs; the fork verifies, and
    can be forked again.
    """
    thread = planned(engine, say(), null(value=1), say())
    finish(engine, thread)
    second = granted(engine.store, SECOND)
    for on in (second.hash, "head", "planned"):
        fork = engine.fork(thread, cut=Cut(at=2), on=on)
        assert finish(engine, fork)["message"] == f"[1, 2] new {thread}", "options are copied whole"
        assert engine.thread(fork).summary.hash == second.hash
        assert engine.verify(fork).ok
    again = engine.fork(fork)
    assert finish(engine, again)["message"] == f"[1, 2] new {thread}"
    assert engine.thread(again).start["forkFrom"]["handedOver"] == 2
    assert engine.verify(again).ok


def test_a_version_that_does_not_continue_starts_anew_or_not_at_all(engine: Engine) -> None:
    """The refusal says what would work."""
    thread = planned(engine, null(value=1))
    finish(engine, thread)
    other = granted(
        engine.store,
        source("fresh", "    yield {'null': {}}\n    return input['steps']\n", continues=False),
    )
    with pytest.raises(RefusedError, match="use --at 0"):
        engine.fork(thread, cut=Cut(at=1), on=other.hash)
    assert finish(engine, engine.fork(thread, cut=Cut(at=0), on=other.hash)) == []


def test_a_version_that_repeats_the_kept_steps_is_replayed(engine: Engine) -> None:
    """It need not continue: it yields the same effects, gets their outcomes, and goes on."""
    thread = planned(engine, null(value=1), null(value=2))
    finish(engine, thread)
    body = """
    first = yield {'null': {'value': 1}}
    second = yield {'null': {'value': 5}}
    return [first, second, input['steps']]
"""
    other = granted(engine.store, source("same", body, continues=False))
    fork = engine.fork(thread, cut=Cut(at=1), on=other.hash)
    assert finish(engine, fork) == [1, 5, []]
    assert engine.thread(fork).start["forkFrom"]["handedOver"] == 0
    assert engine.verify(fork).ok
    with pytest.raises(RefusedError, match="does not repeat them"):
        engine.fork(thread, cut=Cut(at=2), on=other.hash)


TRUSTED = source(
    "trusty",
    """
    steps = list(input["steps"])
    while len(steps) < 3:
        steps.append((yield {"output": {"role": "r", "content": socket.gethostname()[:0] + str(len(steps)), "meta": {}}}))
    yield {"null": {"value": 1}}
    return {"success": True, "message": " ".join(step["content"] for step in steps)}
""",
    head="import socket\n",
    policy={"null": {}, "trusted": True},
)


def test_a_trusted_bundle_runs_without_a_sandbox(engine: Engine) -> None:
    """Any standard module; after a crash it gets its steps as input instead of a replay; its
    effects are not proved.
    """
    granted(engine.store, TRUSTED)
    thread = engine.run("trusty", prompt="")
    assert engine.thread(thread).start["sandbox"] == "none"
    assert finish(engine, thread)["message"] == "0 1 2"
    assert engine.verify(thread).mechanism == "none"
    fork = engine.fork(thread, cut=Cut(at=2))
    assert finish(engine, fork)["message"] == "0 1 2"


def test_a_bundle_without_a_grant_is_refused(engine: Engine) -> None:
    """A bundle that asks for effects does not run because its file lies in the store."""
    bundle = granted(engine.store, PLANNED)
    engine.store.registry_path.unlink()
    with pytest.raises(RefusedError, match="were not granted on this machine"):
        engine.run(bundle.hash, prompt="", params={"plan": []})


def test_what_is_too_large_for_a_line(engine: Engine) -> None:
    """Prompt, effect, outcome and result of megabytes are each in a blob, every line stays below a
    megabyte, and `verify` covers them.
    """
    big = "b" * (2 << 20)
    thread = planned(engine, null(value=big), say(content="c" * 1000), prompt="p" * (10 << 20))
    assert finish(engine, thread)["data"][0] == big
    view = engine.thread(thread)
    assert len(view.start["parameters"]["prompt"]) == 10 << 20
    path = engine.store.data_path(view.summary.hash, thread)
    assert max(map(len, path.read_bytes().split(b"\n"))) < lines.MAX_LINE_BYTES
    assert [("blob" in record) for record in records_of(path.read_bytes())] == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert engine.verify(thread).ok
    assert finish(engine, engine.fork(thread))["data"][0] == big


def test_a_removed_thread_leaves_nothing(engine: Engine) -> None:
    """Journal, debug log and torn tails are gone; the listing no longer has it."""
    thread = planned(engine, null(value=1))
    finish(engine, thread)
    path = engine.store.data_path(engine.thread(thread).summary.hash, thread)
    path.with_name(f"{path.name}.torn-5").write_bytes(b"x")
    # a worker was killed while it wrote the former
    path.with_name(f".{path.name}.torn-5.0123456789ab.tmp").write_bytes(b"x")
    engine.remove_thread(thread)
    assert [one.name for one in path.parent.iterdir()] == []
    assert engine.threads() == []
    with pytest.raises(NotFoundError):
        engine.thread(thread)


def test_an_empty_prompt_is_a_prompt(engine: Engine) -> None:
    """An empty prompt is recorded as it is."""
    thread = planned(engine, prompt="")
    finish(engine, thread)
    assert engine.thread(thread).start["parameters"]["prompt"] == ""


def test_parameters_are_checked_before_anything_is_written(engine: Engine) -> None:
    """An unknown one is named, with those there are; no thread exists afterwards."""
    granted(engine.store, PLANNED)
    with pytest.raises(UsageError, match=r"no parameter 'wrong'; it has: .*plan"):
        engine.run("planned", prompt="", params={"wrong": 1})
    assert engine.threads() == []


def test_a_failure_is_tried_again_as_often_as_the_effect_asks(engine: Engine) -> None:
    """Each try is an attempt line that says why; only the last failure reaches the bundle."""
    thread = planned(
        engine,
        null(fail="no", retry={"times": 2, "pause_s": 0}),
        null(fail="no", retry={"times": 2, "on": ["other"]}),
    )
    assert [one["caught"]["kind"] for one in finish(engine, thread)["data"]] == ["null", "null"]
    tries = [record for record in written(engine, thread) if "attempt" in record]
    assert [(one["seq"], one["attempt"], one["because"]) for one in tries] == [
        (1, 2, "retry"),
        (1, 3, "retry"),
    ]
