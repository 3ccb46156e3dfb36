"""The verbs of schedules, and resuming of threads whose sleep has ended."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.bundles import Placed, granted, place_script, script_of, source
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines
from uncaged_engine.journal.codec import encode

pytestmark = pytest.mark.slow

BODY = """
    until = yield {"sleep": {"until": input["params"]["n"]}}
    return {"success": True, "message": f"woke at {until}"}
"""
HOUR_MS = 3_600_000


def asleep(store: Store, name: str, number: int, until_ms: int, now_ms: int) -> Placed:
    """A thread without a worker, as after a reboot during its sleep."""
    bundle = granted(store, source(name, BODY, policy={"sleep": {}}))
    script = script_of(bundle, number=number, params={"n": until_ms})
    return place_script(
        store,
        bundle,
        script.add(lines.intent(1, encode({"sleep": {"until": until_ms}}).encode(), now_ms)),
    )


def test_a_timer_goes_on_with_what_has_slept_long_enough(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """`due` skips threads that still sleep; a thread that cannot be resumed does not stop
    the others.
    """
    store, now = Store.open(tmp_path / "store"), time.time_ns() // 1_000_000
    early = asleep(store, "early", 1, now - 1, now)
    asleep(store, "late", 2, now + HOUR_MS, now)
    lost = asleep(store, "lost", 3, now - 1, now)
    store.bundle_path(lost.bundle.hash).unlink()
    done = command("due")
    assert (done.returncode, done.stdout) == (1, f"{early.thread}\n")
    assert f"thread {lost.thread} was not resumed: " in done.stderr
    assert f"woke at {now - 1}" in command("thread", early.thread, "--follow").stdout
    assert json.loads(command("due", "--json").stdout)["resumedThreadIds"] == []


def test_a_schedule_is_added_shown_run_and_removed(
    command: Callable[..., subprocess.CompletedProcess[str]],
    flow: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """The verbs print what a person needs; what is due starts once, with the schedule's prompt."""
    flow("echo")
    done = command("schedule", "add", "echo", "@yearly", "--prompt", "hello", "--timezone", "UTC")
    assert done.returncode == 0, done.stderr
    assert "@yearly (UTC)" in done.stdout
    file = tmp_path / "store" / "schedules" / "echo.json"
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "doneMs": fields["doneMs"] - 3 * 366 * 24 * HOUR_MS}))
    first = command("due")
    assert "schedule echo started, once for its last" in first.stderr, "three years, one thread"
    thread = first.stdout.strip()
    assert "said hello" in command("thread", thread, "--follow").stdout
    assert command("due").stdout == ""
    listed = command("schedules").stdout
    assert thread in listed
    assert "-01-01 00:00 UTC" in listed
    file.write_text("{")
    broken = command("due")
    assert (broken.returncode, "schedule rm echo" in broken.stderr) == (1, True)
    assert command("schedule", "rm", "echo").returncode == 0
    assert "no schedules" in command("schedules").stderr
    assert command("schedule", "show", "echo").returncode == 5
    refused = command("schedule", "add", "echo", "0 25 * * *")
    assert (refused.returncode, "its hour is not valid" in refused.stderr) == (2, True)
