"""Requests to a worker's socket: safe to repeat, and refused when the thread's state no longer
allows them.
"""

from __future__ import annotations

from typing import Any

import pytest
from testbed.bundles import COUNT, Placed, granted, place, place_script, script_of, source
from testbed.journals import Script
from testbed.steering import finish, intent_of, settle, wait_for
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_engine.api import Engine
from uncaged_engine.worker import client

pytestmark = pytest.mark.slow

SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")


def ask(engine: Engine, placed: Placed, op: str = "drive", **more: Any) -> dict[str, Any] | None:
    message = {"op": op, "threadId": placed.thread, "environment": {}, "directory": "/", **more}
    return client.request(engine.store, placed.bundle.hash, message, start=True)


def test_asking_twice_drives_once(engine: Engine) -> None:
    """A caller whose answer was lost asks again; the thread has one driver."""
    placed = place(engine.store, SLEEPER)
    assert ask(engine, placed) == {"ok": True}
    assert ask(engine, placed) == {"ok": True, "already": True}
    wait_for(engine, placed.thread, intent_of(1))
    engine.kill(placed.thread)
    assert settle(engine, placed.thread)["status"] == "killed"
    assert placed.path.read_bytes().count(b'"intent"') == 1


def test_another_resume_than_the_one_that_was_taken_is_refused(engine: Engine) -> None:
    """A resume with another note than the accepted one is refused; the accepted one, repeated,
    succeeds.
    """
    bundle = granted(engine.store, SLEEPER)
    placed = place_script(engine.store, bundle, script_of(bundle).control("pause"))
    assert ask(engine, placed, resume={"note": "mine"}) == {"ok": True}
    assert ask(engine, placed, resume={"note": "mine"}) == {"ok": True, "already": True}
    with pytest.raises(RefusedError, match="is running: it cannot be resumed"):
        ask(engine, placed, resume={"note": "yours"})
    engine.kill(placed.thread)
    settle(engine, placed.thread)


def test_a_resume_that_comes_too_late_is_refused(engine: Engine) -> None:
    """A thread that another caller finished after this one looked gets no record behind its end."""
    bundle = granted(engine.store, COUNT)
    script = (
        script_of(bundle, params={"n": 1})
        .done(1)
        .end("completed", result={"success": True, "message": "sum 1"})
    )
    placed = place_script(engine.store, bundle, script)
    requests: list[dict[str, Any]] = [{"resume": {}}, {}]
    for more in requests:
        with pytest.raises(RefusedError, match="is completed: it cannot be resumed"):
            ask(engine, placed, **more)
    assert placed.path.read_bytes() == script.data


def test_an_accepted_resume_is_on_disk(engine: Engine) -> None:
    """With what was said; the worker may die right after its answer."""
    bundle = granted(engine.store, SLEEPER)
    placed = place_script(engine.store, bundle, script_of(bundle).control("pause"))
    ask(engine, placed, resume={"note": "look again", "maxSteps": 50})
    assert b'{"control":"resume","note":"look again","maxSteps":50,' in placed.path.read_bytes()
    engine.kill(placed.thread)
    settle(engine, placed.thread)


def test_a_config_that_cannot_be_read_leaves_the_thread_free(engine: Engine) -> None:
    """The caller hears of it, and the journal is not kept locked by a worker that does not drive
    it.
    """
    placed = place(engine.store, COUNT, params={"n": 1})
    other = place(engine.store, COUNT, number=1, params={"n": 1})
    ask(engine, other)
    finish(engine, other.thread)
    engine.store.config_path.write_text("limits: [nonsense]\n")
    with pytest.raises(UsageError, match="limits"):
        ask(engine, placed)
    assert engine.thread(placed.thread).summary.status == "interrupted"
    engine.store.config_path.unlink()
    ask(engine, placed)
    finish(engine, placed.thread)


def test_what_the_worker_does_not_drive_it_does_not_steer(engine: Engine) -> None:
    """A worker that does not drive the thread answers so, and leaves the request to the caller."""
    placed = place(engine.store, COUNT, params={"n": 1})
    ask(engine, placed)
    finish(engine, placed.thread)
    for op in ("pause", "kill", "follow"):
        with pytest.raises(NotFoundError, match="does not run here"):
            ask(engine, placed, op)


def test_a_corrupt_journal_is_refused_and_the_worker_lives(engine: Engine) -> None:
    """The error says where; other threads are served."""
    bundle = granted(engine.store, COUNT)
    script: Script = script_of(bundle, params={"n": 3}).done(1).done(2)
    placed = place_script(engine.store, bundle, script)
    placed.path.write_bytes(script.data.replace(b'"value":1', b'"value":9'))
    with pytest.raises(DamagedError, match="is corrupt at"):
        ask(engine, placed)
    good = place(engine.store, COUNT, number=1, params={"n": 2})
    ask(engine, good)
    assert finish(engine, good.thread)["message"] == "sum 3"
