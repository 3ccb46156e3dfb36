"""Effects inside effects, children, people, sleep and retries, in whole threads on real workers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from testbed.bundles import COUNT, PLANNED, granted, source
from testbed.processes import end_workers
from testbed.steering import finish, intent_of, marks, settle, wait_for, written
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, Replacement, RunOptions

pytestmark = pytest.mark.slow

WIDE = PLANNED.replace(b"'name': 'planned'", b"'name': 'wide'").replace(
    b"'policy': {'null': {}}",
    b"'policy': {'null': {}, 'all': {}, 'flow': {}, 'ask': {}, 'sleep': {}, 'now': {}}",
)


def wide(engine: Engine, *plan: object, options: RunOptions | None = None) -> ThreadId:
    """Start a thread that yields these effects and may use every kind that needs nothing from
    outside.
    """
    granted(engine.store, WIDE)
    granted(engine.store, COUNT)
    return engine.run("wide", prompt="", params={"plan": list(plan)}, options=options)


def together(*effects: object, **more: object) -> Mapping[str, object]:
    return {"all": {"effects": list(effects), **more}}


def child(n: int, name: str = "count") -> Mapping[str, object]:
    return {"flow": {"name": name, "params": {"n": n}}}


@pytest.mark.parametrize("limit", [1, 3, 64])
def test_all_answers_in_order_whatever_runs_at_once(engine: Engine, limit: int) -> None:
    """Each effect inside is a sub-step; one failure hides no other's result."""
    thread = wide(
        engine,
        together(
            {"null": {"value": 1}}, {"null": {"fail": "no"}}, {"null": {"value": 3}}, limit=limit
        ),
    )
    [answers] = finish(engine, thread)["data"]
    assert [answer.get("outcome") for answer in answers] == [1, None, 3]
    assert answers[1]["error"]["message"] == "no"
    assert sorted(record["sub"] for record in written(engine, thread) if "sub" in record) == [
        0,
        1,
        2,
    ]
    assert engine.verify(thread).ok


def test_what_a_crash_left_of_all_is_finished_and_nothing_more(engine: Engine) -> None:
    """Sub-steps that have a line are not performed again; their answers come from it."""
    slow = {"null": {"value": "late", "sleep_s": 600}}
    thread = wide(engine, together({"null": {"value": "early", "mark": True}}, slow, limit=1))
    wait_for(engine, thread, lambda event: event.kind == "record" and "sub" in event.body)
    end_workers(engine.store.root)
    assert engine.thread(thread).summary.status == "interrupted"
    engine.resume(thread)
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "record" and event.body.get("because") == "interrupted",
    )
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert (engine.store.work / f"{thread}.null").read_text("utf-8").split() == [f"{thread}/1.0"]


def test_children_answer_their_parent_and_use_one_worker_per_bundle(engine: Engine) -> None:
    """A hundred children through all and flow: no deadlock at any limit, each with its own
    journal.
    """
    thread = wide(engine, together(*(child(n % 5 + 1) for n in range(100)), limit=16))
    [answers] = finish(engine, thread)["data"]
    assert [answer["outcome"]["message"] for answer in answers] == [
        f"sum {sum(range(1, n % 5 + 2))}" for n in range(100)
    ]
    assert len(engine.threads("count")) == 100
    assert {one.hash for one in engine.threads("count")} == {engine.bundle("count").hash}


def test_a_crash_finds_the_child_again(engine: Engine) -> None:
    """The child's id is derived from the parent's step, so there is never a second one; a kill
    reaches it.
    """
    body = '    yield {"null": {"value": 1, "sleep_s": 600}}\n    return {"success": True, "message": "up"}\n'
    granted(engine.store, source("napper", body))
    thread = wide(engine, child(1, "napper"))
    first = the_child(engine)
    until_it_runs(engine, first)
    wait_for(engine, first, intent_of(1))
    end_workers(engine.store.root)
    assert engine.thread(first).summary.status == "interrupted"
    engine.resume(thread)
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "record" and event.body.get("because") == "interrupted",
    )
    until_it_runs(engine, first)
    assert the_child(engine) == first
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert settle(engine, first)["status"] == "killed"


def until_it_runs(engine: Engine, thread: ThreadId) -> None:
    """A thread exists a moment before its worker has it."""
    while engine.thread(thread).summary.status != "running":
        pass


def the_child(engine: Engine) -> ThreadId:
    """The one thread that the parent starts, as soon as it is there."""
    while not (found := engine.threads("napper")):
        pass
    [only] = found
    return only.thread_id


def test_a_flow_that_is_not_there_is_the_bundles_error(engine: Engine) -> None:
    """The error names the closest known flow, and other flows are unaffected."""
    [caught] = finish(engine, wide(engine, child(1, "cuont")))["data"]
    assert caught["caught"]["kind"] == "flow"
    assert "did you mean 'count'" in caught["caught"]["message"]


def test_a_flow_that_was_removed_meanwhile_is_finished_all_the_same(engine: Engine) -> None:
    """A running child is known by its hash; after a crash it is found, and only the next call hears
    that there is no such flow.
    """
    body = '    yield {"null": {"value": 1, "sleep_s": 600}}\n'
    granted(engine.store, source("napper", body))
    thread = wide(engine, child(1, "napper"), child(1, "napper"))
    first = the_child(engine)
    until_it_runs(engine, first)
    wait_for(engine, first, intent_of(1))
    engine.registry.remove("napper")
    end_workers(engine.store.root)
    engine.resume(thread)
    until_it_runs(engine, first)
    engine.kill(first)
    caught = finish(engine, thread)["data"]
    assert [answer["caught"]["kind"] for answer in caught] == ["flow", "flow"]
    assert caught[0]["caught"]["threadId"] == first
    assert "no flow" in caught[1]["caught"]["message"]
    assert len(engine.threads()) == 2


def test_a_disabled_flow_starts_no_child(engine: Engine) -> None:
    """The parent hears of it as of any failure."""
    granted(engine.store, COUNT)
    engine.registry.set_enabled("count", enabled=False)
    [caught] = finish(engine, wide(engine, child(1)))["data"]
    assert caught["caught"]["kind"] == "flow"
    assert "disabled" in caught["caught"]["message"]


def test_a_child_gets_what_is_left_of_its_parents_limits(engine: Engine) -> None:
    """Of money, tokens and time; rounds are each thread's own."""
    thread = wide(
        engine,
        child(1),
        options=RunOptions(max_cost=2.5, max_tokens=1000, max_seconds=60, max_rounds=3),
    )
    finish(engine, thread)
    [started] = engine.threads("count")
    limits = engine.thread(started.thread_id).start["parameters"]["options"]
    assert (limits["maxCost"], limits["maxTokens"], limits["maxRounds"]) == (2.5, 1000, 10)
    assert 50 < limits["maxSeconds"] <= 60


def test_an_effect_that_nobody_knows_keeps_no_thread_from_going_on(engine: Engine) -> None:
    """Inside `all` it is refused like any other that the policy does not name, after a crash as
    well.
    """
    slow = {"null": {"sleep_s": 600}}
    thread = wide(engine, together({"teleport": {}}, slow))
    wait_for(engine, thread, lambda event: event.kind == "record" and "sub" in event.body)
    end_workers(engine.store.root)
    engine.resume(thread)
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "record" and event.body.get("because") == "interrupted",
    )
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    [refused] = [record["error"] for record in written(engine, thread) if "sub" in record]
    assert refused["kind"] == "policy"
    assert "'teleport'" in refused["message"]


def test_a_flow_that_calls_itself_ends_at_a_depth(engine: Engine) -> None:
    """Cycles are fine, runaway is not."""
    body = '    answer = yield {"flow": {"name": "mirror"}}\n    return {"success": True, "message": answer["message"]}\n'
    granted(engine.store, source("mirror", body, policy={"flow": {}}))
    thread = engine.run("mirror", prompt="")
    assert settle(engine, thread)["status"] == "failed"
    assert len(engine.threads("mirror")) == 17
    assert "16 levels deep" in engine.thread(thread).summary.message


def newest_of(engine: Engine, count: int) -> ThreadId:
    """The newest thread, once there are so many and its worker has it."""
    while len(found := engine.threads()) < count or found[0].status == "interrupted":
        assert any(one.status == "running" for one in found)
    return found[0].thread_id


def test_a_kill_reaches_children_in_the_same_worker(engine: Engine) -> None:
    """A flow that calls itself: the worker is asked to kill the child while it kills the parent."""
    granted(engine.store, DESCENDING)
    thread = engine.run("descending", prompt="", params={"n": 2})
    wait_for(engine, newest_of(engine, 3), intent_of(1))
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert {settle(engine, one.thread_id)["status"] for one in engine.threads()} == {"killed"}


DESCENDING = source(
    "descending",
    """
    n = input["params"]["n"]
    yield {"flow": {"name": "descending", "params": {"n": n - 1}}} if n else {"null": {"sleep_s": 600}}
""",
    policy={"flow": {}, "null": {}},
)


def test_a_child_that_is_removed_is_the_bundles_error(engine: Engine) -> None:
    """A child that its parent waits for is not removed by a command; without its file the parent
    gets an answer all the same.
    """
    granted(engine.store, PLANNED)
    granted(engine.store, source("parent", PARENT, policy={"flow": {}}))
    thread = engine.run("parent", prompt="")
    below = newest_of(engine, 2)
    assert settle(engine, below)["status"] == "waiting"
    with pytest.raises(RefusedError, match=f"its parent {thread} .* is running"):
        engine.remove_thread(below)
    engine.store.data_path(engine.thread(below).summary.hash, below).unlink()
    assert "was removed before it had ended" in finish(engine, thread)["message"]


PARENT = """
    try:
        yield {"flow": {"name": "planned", "params": {"plan": [{"null": {"wait": True}}]}}}
    except EffectError as error:
        return {"success": True, "message": error.error["message"]}
"""


def test_a_person_is_asked_and_the_answer_is_checked(engine: Engine) -> None:
    """The thread waits on disk, survives its worker, refuses what does not fit, and goes on with
    what does.
    """
    thread = wide(engine, {"ask": {"question": "colour?", "choices": ["red", "blue"]}})
    assert settle(engine, thread)["status"] == "waiting"
    with pytest.raises(UsageError, match="'green' is not one of"):
        engine.answer(thread, "green")
    end_workers(engine.store.root)
    engine.answer(thread, "red")
    assert finish(engine, thread)["data"] == ["red"]
    assert engine.verify(thread).ok
    with pytest.raises(RefusedError, match="is completed: it cannot be answered"):
        engine.answer(thread, "red")


def test_retries_are_in_the_journal(engine: Engine) -> None:
    """A failed effect is tried again as often as it asks for, each time with a line of its own."""
    thread = wide(
        engine,
        {"null": {"fail": "no", "retry": {"times": 2, "pause_s": 0}}},
        {"null": {"fail": "x", "retry": {"times": 1, "on": ["y"]}}},
    )
    caught = finish(engine, thread)["data"]
    assert [answer["caught"]["message"] for answer in caught] == ["no", "x"]
    attempts = [
        (record["seq"], record["attempt"], record["because"])
        for record in written(engine, thread)
        if "attempt" in record
    ]
    assert attempts == [(1, 2, "retry"), (1, 3, "retry")]


def test_a_sleep_counts_from_when_it_was_asked_for(engine: Engine) -> None:
    """After a crash the rest is slept, and `sleepers` has it once it is over."""
    thread = wide(engine, {"now": {}}, {"sleep": {"seconds": 600}}, {"sleep": {"until": 1}})
    wait_for(engine, thread, intent_of(2))
    end_workers(engine.store.root)
    assert engine.sleepers() == []
    late = Engine(
        engine.store,
        chance=type(engine._chance)(clock_ms=lambda: engine._chance.clock_ms() + 601_000),
    )
    assert late.sleepers() == [thread]


def test_a_made_up_outcome_leads_elsewhere(engine: Engine) -> None:
    """The prefix is free: nothing of it is performed again; the replay proves the fork with its own
    outcome.
    """
    thread = wide(engine, {"null": {"value": 1, "mark": True}}, {"null": {"value": 2}})
    finish(engine, thread)
    fork = engine.fork(thread, cut=Cut(at=1), instead=Replacement([7]))
    assert finish(engine, fork)["data"] == [[7], 2]
    assert marks(engine, fork) == []
    assert engine.verify(fork).ok
    assert engine.thread(fork).start["forkFrom"]["instead"] is True
    with pytest.raises(UsageError, match="no step whose outcome"):
        engine.fork(thread, cut=Cut(at=0), instead=Replacement(7))


def test_a_made_up_outcome_of_an_all_differs_from_its_parts(engine: Engine) -> None:
    """A fork with another outcome of an `all` keeps the parts of the source, and verifies."""
    thread = wide(engine, together({"null": {"value": 1}}, {"null": {"value": 2}}))
    finish(engine, thread)
    parts = [{"outcome": 7}, {"outcome": 8}]
    fork = engine.fork(thread, cut=Cut(at=1), instead=Replacement(parts))
    assert finish(engine, fork)["data"] == [parts]
    verdict = engine.verify(fork)
    assert verdict.ok, verdict.message


def test_a_new_version_is_checked_against_the_past(engine: Engine) -> None:
    """Identical threads, and the first step of those that part, without performing anything."""
    old = granted(engine.store, COUNT)
    threads = [engine.run("count", prompt="", params={"n": n}) for n in (1, 2, 4)]
    for thread in threads:
        finish(engine, thread)
    same = granted(engine.store, COUNT + b"\n# the same\n")
    assert [one.identical for one in engine.check("count", same)] == [True, True, True]
    other = granted(engine.store, COUNT.replace(b'{"value": number}', b'{"value": min(number, 2)}'))
    assert old.hash != other.hash
    found = {one.thread_id: one for one in engine.check("count", other)}
    assert [found[thread].identical for thread in threads] == [True, True, False]
    assert found[threads[2]].step == 3
    assert (found[threads[2]].recorded, found[threads[2]].yielded) == (
        '{"null":{"value":3}}',
        '{"null":{"value":2}}',
    )
    assert len(engine.threads()) == 3
