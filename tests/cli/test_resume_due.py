"""Resuming of threads whose sleep has ended."""

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
    """`resume --due` skips threads that still sleep; a thread that cannot be resumed does not stop
    the others.
    """
    store, now = Store.open(tmp_path / "store"), time.time_ns() // 1_000_000
    early = asleep(store, "early", 1, now - 1, now)
    asleep(store, "late", 2, now + HOUR_MS, now)
    lost = asleep(store, "lost", 3, now - 1, now)
    store.bundle_path(lost.bundle.hash).unlink()
    done = command("resume", "--due")
    assert (done.returncode, done.stdout) == (1, f"{early.thread}\n")
    assert f"thread {lost.thread} was not resumed: " in done.stderr
    assert f"woke at {now - 1}" in command("thread", early.thread, "--follow").stdout
    assert json.loads(command("resume", "--due", "--json").stdout) == {"threadIds": []}
