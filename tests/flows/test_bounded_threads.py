"""A thread's rounds, journal and computations are bounded, and each bound can be raised."""

from __future__ import annotations

import json

import pytest
from testbed.bundles import PLANNED, granted, source
from testbed.processes import end_workers
from testbed.steering import finish, intent_of, marks, settle, wait_for, written
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, RunOptions

pytestmark = pytest.mark.slow

MARKED = {"null": {"value": 1, "mark": True}}


def planned(
    engine: Engine, *plan: object, options: RunOptions | None = None, policy: object = None
) -> ThreadId:
    text = (
        PLANNED
        if policy is None
        else PLANNED.replace(b"'policy': {'null': {}}", f"'policy': {policy!r}".encode())
    )
    granted(engine.store, text)
    return engine.run("planned", prompt="", params={"plan": list(plan)}, options=options)


def size_of(engine: Engine, thread: ThreadId) -> int:
    """The bytes of the journal and of all blobs."""
    return engine.store.locate_thread(thread)[2].stat().st_size + sum(
        path.stat().st_size for path in engine.store.blobs.iterdir()
    )


@pytest.mark.parametrize(
    "nothing", [RunOptions(max_rounds=0), RunOptions(max_steps=0)], ids=["rounds", "steps"]
)
def test_no_rounds_at_all_perform_no_effect(engine: Engine, nothing: RunOptions) -> None:
    """`--max-rounds 0` writes start and end only, whatever kind the first effect has; resume and
    fork with 0 perform nothing, too.
    """
    thread = planned(engine, MARKED, MARKED, options=nothing)
    assert settle(engine, thread)["status"] == "limit"
    assert [next(iter(record)) for record in written(engine, thread)] == ["end"]
    with pytest.raises(RefusedError, match="above 0"):
        engine.resume(thread, options=nothing)
    engine.resume(thread, options=RunOptions(max_rounds=1, max_steps=10))
    finish(engine, thread)
    assert marks(engine, thread) == [1, 2]
    fork = engine.fork(thread, cut=Cut(at=1), options=nothing)
    assert settle(engine, fork)["status"] == "limit"
    assert marks(engine, fork) == []


def test_a_resume_with_no_rounds_does_not_perform_an_open_effect(engine: Engine) -> None:
    """An effect that a crash left open is closed by a void of the limit, and performed once the
    limit is higher.
    """
    thread = planned(engine, {"null": {"value": 1, "first_s": 600, "mark": True}})
    wait_for(engine, thread, intent_of(1))
    end_workers(engine.store.root)
    engine.resume(thread, options=RunOptions(max_rounds=0))
    assert settle(engine, thread)["status"] == "limit"
    assert [record["void"] for record in written(engine, thread) if "void" in record] == ["limit"]
    assert marks(engine, thread) == []
    engine.resume(thread, options=RunOptions(max_rounds=1))
    finish(engine, thread)
    assert marks(engine, thread) == [1]


def test_refused_effects_do_not_fill_the_disk(engine: Engine) -> None:
    """Effects of 0.9 MB that the policy refuses leave a digest each; the thread is replayed and
    proved by the digests.
    """
    large = [{"http": {"url": "http://127.0.0.1/", "text": letter * 900_000}} for letter in "abc"]
    thread = planned(engine, *large, {"output": {"role": "b" * 900_000}}, "raise", policy={})
    assert settle(engine, thread)["status"] == "failed"
    own = size_of(engine, thread) - 4 * 900_000  # the prompt's parameters hold the plan
    assert own < 20_000
    [first, *_] = [record["intent"] for record in written(engine, thread) if "intent" in record]
    assert {**first, "digest": "", "head": first["head"][:9]} == {
        "kind": "http",
        "digest": "",
        "bytes": 900_046,
        "head": '{"http":{',
    }
    assert engine.verify(thread).ok
    path = engine.store.locate_thread(thread)[2]
    digests = [
        record["intent"]["digest"] for record in written(engine, thread) if "intent" in record
    ]
    assert len(set(digests)) == 4
    fork = engine.fork(thread, cut=Cut(at=3))
    assert settle(engine, fork)["status"] == "failed"
    assert path.stat().st_size < 20_000


def test_a_journal_has_a_limit_that_can_be_raised(engine: Engine) -> None:
    """The journal and its blobs count together; at the limit nothing further is performed, and a
    higher one goes on.
    """
    big = {"null": {"value": "x", "times": 600_000}}
    thread = planned(engine, big, big, big, options=RunOptions(max_journal_bytes=1_000_000))
    assert settle(engine, thread) == {
        "status": "limit",
        "message": "the limit of 1,000,000 journal bytes is reached",
        "steps": 2,
    }
    with pytest.raises(RefusedError, match=r"resume it with --max-journal above 1e\+06 bytes"):
        engine.resume(thread)
    engine.resume(thread, options=RunOptions(max_journal_bytes=10_000_000))
    assert len(finish(engine, thread)["data"]) == 3
    assert engine.verify(thread).ok


def test_the_parts_of_an_all_stop_at_the_journal_s_limit(engine: Engine) -> None:
    """A limit that is passed in the middle of an effect stops it; the parts that were not begun are
    performed once it is higher.
    """
    parts = [{"null": {"value": "x", "times": 100_000, "mark": True}} for _ in range(6)]
    policy: dict[str, object] = {"null": {}, "all": {}}
    thread = planned(
        engine,
        {"all": {"effects": parts, "limit": 1}},
        options=RunOptions(max_journal_bytes=250_000),
        policy=policy,
    )
    assert settle(engine, thread)["status"] == "limit"
    assert len([record for record in written(engine, thread) if "sub" in record]) == 3
    engine.resume(thread, options=RunOptions(max_journal_bytes=5_000_000))
    finish(engine, thread)
    assert len((engine.store.work / f"{thread}.null").read_text("utf-8").split()) == 6


SLOW = source(
    "slow",
    """
    for number in range(input["params"]["n"]):
        for _ in range(input["params"]["value"]):
            pass
        yield {"null": {"value": number, "mark": True}}
    return {"success": True, "message": "done"}
""",
)


def test_a_computation_that_is_too_long_is_a_limit_that_can_be_raised(engine: Engine) -> None:
    """A bundle that computes longer than bundleSeconds ends as `limit`, nothing performed is lost,
    and --bundle-time lets it go on.
    """
    granted(engine.store, SLOW)
    engine.store.config_path.write_text(json.dumps({"limits": {"bundleSeconds": 0.3}}))
    thread = engine.run("slow", prompt="", params={"n": 1, "value": 60_000_000})
    ended = settle(engine, thread)
    assert (ended["status"], ended["message"]) == (
        "limit",
        "the bundle computed for more than 0.3 seconds before step 1, also when it was tried alone",
    )
    with pytest.raises(RefusedError, match=r"resume it with --bundle-time above 0\.3s"):
        engine.resume(thread)
    engine.resume(thread, options=RunOptions(bundle_seconds=120))
    finish(engine, thread)
    assert marks(engine, thread) == [1]
    assert engine.verify(thread).ok


def test_many_computations_that_are_each_short_enough_are_replayed(engine: Engine) -> None:
    """A replay computes all over again: it may take as long as the journal says, not only one
    computation's limit.
    """
    granted(engine.store, SLOW)
    engine.store.config_path.write_text(json.dumps({"limits": {"bundleSeconds": 2.0}}))
    thread = engine.run(
        "slow", prompt="", params={"n": 8, "value": 15_000_000}, options=RunOptions(max_steps=7)
    )
    assert settle(engine, thread)["status"] == "limit"
    end_workers(engine.store.root)
    engine.resume(thread, options=RunOptions(max_steps=10))
    finish(engine, thread)
    assert marks(engine, thread) == list(range(1, 9))


def test_a_run_may_compute_longer_than_the_config_says(engine: Engine) -> None:
    """`run --bundle-time` is for one thread; config.yaml stays as it is."""
    granted(engine.store, SLOW)
    engine.store.config_path.write_text(json.dumps({"limits": {"bundleSeconds": 0.3}}))
    thread = engine.run(
        "slow",
        prompt="",
        params={"n": 1, "value": 30_000_000},
        options=RunOptions(bundle_seconds=120),
    )
    finish(engine, thread)
