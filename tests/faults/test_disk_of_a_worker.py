"""A worker that cannot start says where and why; one that met a bug is replaced, and its other
threads go on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from testbed.bundles import COUNT, PLANNED, granted, place
from testbed.fault_checks import drive, drive_message
from testbed.foreground import environment, worker
from testbed.steering import finish, intent_of, wait_for
from testbed.straced import strace
from uncaged_bundles.storage.store import HOME_VARIABLE
from uncaged_engine.api import Engine
from uncaged_engine.worker import address, client

pytestmark = pytest.mark.slow

BUGGY = ("-m", "testbed.patched", "bug-in-null", "uncaged_engine.worker")


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("fault", "reason"), [("EIO", "Input/output error"), ("ENOSPC", "No space left on device")]
)
@pytest.mark.parametrize("what", ["lock", "socket", "report"])
def test_a_worker_that_cannot_start_is_an_error_with_the_path(
    engine: Engine, tmp_path: Path, what: str, fault: str, reason: str
) -> None:
    """A broken or full disk at its lock, its socket or the file for its report: exit 1, the place
    and the reason, and no bug.
    """
    bundle = granted(engine.store, COUNT)
    place_of = {
        "lock": address.lock_path(engine.store, bundle.hash),
        "report": address.report_path(engine.store, bundle.hash),
    }
    call = "bind" if what == "socket" else "openat"
    paths = [place_of[what]] if what in place_of else []
    words = strace(tmp_path / "log", calls=[call], paths=paths, inject=f"{call}:error={fault}")
    done = subprocess.run(
        [*words, sys.executable, "-m", "uncaged_cli", "run", "count"],
        env={**environment(), HOME_VARIABLE: str(engine.store.root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert (
        str(place_of.get(what, address.socket_path(engine.store, bundle.hash).parent))
        in done.stderr
    )
    assert reason in done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
    finish(engine, engine.run("count", prompt=""))


def test_a_worker_that_met_a_bug_is_replaced(engine: Engine) -> None:
    """The flow's next thread runs on another worker at once; the thread that the old worker still
    drives is listed, followed and killed as before.
    """
    living = place(engine.store, PLANNED, params={"plan": [{"null": {"sleep_s": 600}}]})
    failing = place(engine.store, PLANNED, number=1, params={"plan": [{"null": {"fail": "bug"}}]})
    with worker(engine.store, living.bundle.hash, python=BUGGY) as first:
        client.request(engine.store, living.bundle.hash, drive_message(living), start=False)
        wait_for(engine, living.thread, intent_of(1))
        drive(engine.store, failing)
        assert len(list(engine.store.run.glob(f"report-*-{failing.thread}.txt"))) == 1
        assert finish(
            engine, engine.run("planned", prompt="", params={"plan": [{"null": {"value": 1}}]})
        )["data"] == [1]
        engine.resume(failing.thread)
        assert finish(engine, failing.thread)["data"] == [
            {"caught": {"kind": "null", "message": "bug"}}
        ]
        assert [(one["threadId"], one["pid"]) for one in engine.working()] == [
            (living.thread, first.pid)
        ]
        events = engine.follow(living.thread)
        assert next(events).body["threadId"] == living.thread
        engine.kill(living.thread)
        assert list(events)[-1].body["status"] == "killed"
        assert first.wait(60) == 0
    assert address.draining_paths(engine.store, living.bundle.hash) == []
