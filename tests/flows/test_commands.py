"""The table of a thread's life is true of real threads: each command in each state that needs no
worker.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testbed.bundles import PLANNED, Placed, granted, place_script, script_of
from testbed.journals import Script
from testbed.steering import settle
from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.state.states import GONE, SAME, TABLE, Event, State

Build = Callable[[Script], Script]
FIRST = {"null": {"value": 1}}
SECOND = {"null": {"sleep_s": 600}}
UNSURE = {"null": {"sleep_s": 600, "rule": "ask"}}

STATES: dict[State, tuple[list[object], Build]] = {
    "paused": ([FIRST, SECOND], lambda s: s.done(1, FIRST, outcome=1).control("pause")),
    "waiting": (
        [{"null": {"wait": True}}],
        lambda s: s.intent(1, {"null": {"wait": True}}).control("wait", seq=1),
    ),
    "interrupted": ([FIRST, SECOND], lambda s: s.done(1, FIRST, outcome=1)),
    "unknown": ([FIRST, UNSURE], lambda s: s.done(1, FIRST, outcome=1).intent(2, UNSURE)),
    "completed": (
        [],
        lambda s: s.end("completed", result={"success": True, "message": "0", "data": []}),
    ),
    "failed": (
        ["raise"],
        lambda s: s.end(
            "failed", error={"kind": "bundle", "type": "ValueError", "message": "as planned"}
        ),
    ),
    "killed": (
        [FIRST, SECOND],
        lambda s: s.done(1, FIRST, outcome=1).intent(2, SECOND).void(2).end("killed"),
    ),
    "limit": (
        [FIRST, SECOND],
        lambda s: s.done(1, FIRST, outcome=1).end(
            "limit", limit="maxSteps", value=1, message="enough"
        ),
    ),
    "corrupt": ([FIRST, SECOND], lambda s: s.done(1, FIRST, outcome=1).done(2, FIRST, outcome=1)),
}
COMMANDS: dict[Event, Callable[[Engine, ThreadId], object]] = {
    "pause": lambda engine, thread: engine.pause(thread),
    "kill": lambda engine, thread: engine.kill(thread),
    "resume": lambda engine, thread: engine.resume(
        thread,
        options=RunOptions(max_steps=9),
        redo=engine.thread(thread).summary.status == "unknown",
    ),
    "answer": lambda engine, thread: engine.answer(thread, "this"),
    "remove": lambda engine, thread: engine.remove_thread(thread),
    "fork": lambda engine, thread: engine.fork(thread, start=False),
}


def placed_in(engine: Engine, state: State) -> Placed:
    plan, build = STATES[state]
    bundle = granted(engine.store, PLANNED)
    script = build(script_of(bundle, params={"plan": plan}))
    placed = place_script(engine.store, bundle, script)
    if state == "corrupt":
        placed.path.write_bytes(b"".join([script.sealed[0], b"x" * 9 + b"\n", *script.sealed[2:]]))
    return placed


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", COMMANDS)
def test_a_command_does_what_the_table_says(engine: Engine, state: State, event: Event) -> None:
    """The state that it leads to, or an error that names the state and changes nothing."""
    placed = placed_in(engine, state)
    thread = placed.thread
    assert engine.threads()[0].status == state
    before = placed.path.read_bytes()
    target = TABLE[state].get(event)
    if target is None:
        with pytest.raises(RefusedError, match=f"thread {thread} is {state}: it cannot be "):
            COMMANDS[event](engine, thread)
        assert placed.path.read_bytes() == before
        return
    COMMANDS[event](engine, thread)
    if target == GONE:
        assert engine.threads() == []
    elif target == SAME:
        assert placed.path.read_bytes() == before
    elif target != "running":
        assert engine.thread(thread).summary.status == target
    elif event == "answer":
        assert settle(engine, thread)["status"] == "waiting", (
            "this effect waits again, whatever it is told"
        )
    else:
        assert engine.thread(thread).summary.status == "running"
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"


def test_a_corrupt_thread_can_be_forked_before_its_damage(engine: Engine) -> None:
    """`fork --at N` works up to it; the damaged journal is not touched."""
    placed = placed_in(engine, "corrupt")
    with pytest.raises(UncagedError, match="has 0 whole steps"):
        engine.fork(placed.thread, cut=Cut(at=1), start=False)
    fork = engine.fork(placed.thread, start=False)
    assert engine.thread(fork).summary.status == "paused"


def test_a_listing_has_every_thread(engine: Engine) -> None:
    """A listing has a thread of each state, the newest first, and can be filtered by flow."""
    for number, state in enumerate(STATES):
        plan, build = STATES[state]
        bundle = granted(engine.store, PLANNED)
        script = build(script_of(bundle, number=number, params={"plan": plan}))
        placed = place_script(engine.store, bundle, script)
        if state == "corrupt":
            placed.path.write_bytes(b"".join([script.sealed[0], b"x\n", *script.sealed[2:]]))
    assert [one.status for one in engine.threads()] == list(reversed(STATES))
    assert len(engine.threads("planned")) == len(STATES)
