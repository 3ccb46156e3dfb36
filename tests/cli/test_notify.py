"""`notify` through the real command."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import place
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.threads.deaths import STARTING_MS
from uncaged_engine.threads.following import wait_until_left

pytestmark = pytest.mark.slow
Command = Callable[..., subprocess.CompletedProcess[str]]


def listed(command: Command) -> list[Any]:
    done = command("notify", "--json")
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)["notifications"]
    return found


def test_threads_that_wait_or_were_not_followed_are_listed(
    command: Command, flow: Callable[[str], str], tmp_path: Path
) -> None:
    """A followed thread is not listed, one that asks is until it is cleared, a detached one until
    it is shown.
    """
    for name in ("ask", "boom"):
        flow(name)
    assert (listed(command), command("notify").stderr) == ([], "nothing new\n")
    assert command("run", "boom").returncode == 3
    assert listed(command) == []
    assert command("run", "ask").returncode == 8
    detached = command("run", "boom", "--detach").stdout.strip()
    store = Store.open(tmp_path / "store")
    wait_until_left(store, *store.locate_thread(detached))
    found = listed(command)
    assert [(one["flow"], one["status"]) for one in found] == [
        ("boom", "failed"),
        ("ask", "waiting"),
    ]
    assert "uncaged-workflow answer" in command("notify").stderr
    assert detached in command("notify", "show", "1").stdout
    assert [one["status"] for one in listed(command)] == ["waiting"]
    assert command("notify", "show", "2").returncode == 5
    assert command("notify", "show", "0").returncode == 2
    assert command("notify", "clear").returncode == 0
    assert listed(command) == []
    seen = tmp_path / "store" / "notifications.jsonl"
    seen.write_text('{"format": 2}\n')
    refused = command("notify")
    assert (refused.returncode, "newer version" in refused.stderr) == (1, True)
    assert command("run", "boom").returncode == 3
    assert seen.read_text() == '{"format": 2}\n', "another version's file is left as it is"


def test_a_notification_is_sent_to_try_the_settings(command: Command, tmp_path: Path) -> None:
    """Without a section the advice is one; a delivery is confirmed, a failure is the exit code. A
    command that lists a dead thread notifies of it once.
    """
    config = tmp_path / "store" / "config.yaml"
    assert f"{config} has no section `notify`" in command("notify", "test").stderr
    config.write_text(f"notify: {{command: [cp, /dev/stdin, '{tmp_path}/{{event}}']}}\n")
    assert json.loads(command("notify", "test", "--json").stdout) == {"delivered": True}
    assert json.loads((tmp_path / "test").read_text())["event"] == "test"
    store = Store.open(tmp_path / "store")
    dead = place(store)
    journal = JournalFile.open(store, dead.bundle.hash, dead.thread)
    long_ago_ms = time.time_ns() // 1_000_000 - 2 * STARTING_MS
    journal.append(lines.control("resume", {}, long_ago_ms), flush=True)
    journal.close()
    assert dead.thread in command("threads").stdout
    assert json.loads((tmp_path / "interrupted").read_text())["subject"] == dead.thread
    (tmp_path / "interrupted").unlink()
    assert command("threads").stderr == command("notify").stderr == ""
    assert not (tmp_path / "interrupted").exists()
    config.write_text("notify: {command: ['false']}\n")
    failed = command("notify", "test")
    assert (failed.returncode, "ended with 1" in failed.stderr) == (1, True)
