"""A worker or a command dies in each window of a notification that the code names."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from testbed.bundles import PLANNED, Placed, place
from testbed.fault_checks import drive
from testbed.foreground import at_window, environment, worker
from testbed.journals import records_of
from testbed.steering import settle
from testbed.webserver import Reply, Seen, serving
from testbed.windows import window
from uncaged_engine.api import Engine
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile

pytestmark = pytest.mark.slow

LONE_NOTE = "a note without its status, which the next owner writes again with its own"
UNSENT = "note and status on disk, the notification not sent; it never is"
DEATH_UNSENT = "a death is noted, its notification not sent; it never is"


@contextmanager
def notified(engine: Engine) -> Iterator[queue.Queue[Any]]:
    """A webhook for the store, and what arrives there."""
    arrived: queue.Queue[Any] = queue.Queue()

    def script(seen: Seen) -> Reply:
        arrived.put(seen.json)
        return Reply(status=204)

    keys = engine.store.root / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    (keys / "HOOK").write_text("a secret of the webhook")
    with serving(script) as web:
        engine.store.config_path.write_text(
            f"notify: {{webhook: {{url: '{web.url}', secret: 'secret:HOOK'}}}}\n"
        )
        yield arrived


def fresh(engine: Engine, plan: list[object]) -> Placed:
    """A thread without a worker whose last line was written just now."""
    placed = place(engine.store, PLANNED, params={"plan": plan})
    journal = JournalFile.open(engine.store, placed.bundle.hash, placed.thread)
    journal.append(lines.control("resume", {}, engine.clock_ms()), flush=True)
    journal.close()
    return placed


def suffer(engine: Engine, placed: Placed, text: str) -> None:
    """Drive a thread on a worker that dies in a window."""
    python = at_window(window(text), "uncaged_engine.worker")
    with worker(engine.store, placed.bundle.hash, python=python) as process:
        drive(engine.store, placed)
        assert process.wait(timeout=60) == -9, "it did not come to that place"


def controls(placed: Placed) -> list[Any]:
    """The journal's controls and end, without times."""
    return [
        record.get("notified") or record.get("control") or record.get("end")
        for record in records_of(placed.path.read_bytes())[2:]
    ]


def test_a_worker_dies_between_a_note_and_its_status(engine: Engine) -> None:
    """The thread is interrupted, which is notified; resumed, it fails, which is notified once."""
    placed = fresh(engine, ["raise"])
    with notified(engine) as arrived:
        suffer(engine, placed, LONE_NOTE)
        assert controls(placed) == ["failed"]
        assert engine.notify_deaths() == []
        assert arrived.get(timeout=60)["event"] == "interrupted"
        engine.resume(placed.thread)
        assert settle(engine, placed.thread)["status"] == "failed"
        assert arrived.get(timeout=60)["event"] == "failed"
        assert controls(placed) == ["failed", "interrupted", "resume", "failed", "failed"]
        assert arrived.empty()


def test_a_worker_dies_before_it_sends(engine: Engine) -> None:
    """The status is kept, and no later look notifies of it: at most once."""
    placed = fresh(engine, ["raise"])
    with notified(engine) as arrived:
        suffer(engine, placed, UNSENT)
        assert engine.thread(placed.thread).summary.status == "failed"
        assert engine.notify_deaths() == []
        assert controls(placed) == ["failed", "failed"]
        assert arrived.empty()


def test_a_command_dies_before_it_notifies_of_a_death(engine: Engine) -> None:
    """The next command that sees the thread finds the note, and sends nothing."""
    placed = fresh(engine, [])
    journal = JournalFile.open(engine.store, placed.bundle.hash, placed.thread)
    journal.append(lines.intent(1, b'{"null":{"value":1}}', engine.clock_ms()), flush=True)
    journal.close()
    with notified(engine) as arrived:
        python = at_window(window(DEATH_UNSENT), "testbed.store_actions")
        done = subprocess.run(
            [sys.executable, *python, str(engine.store.root), "notify-deaths"],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == -9, (done.returncode, done.stderr)
        assert controls(placed) == [None, "interrupted"]
        assert engine.notify_deaths() == []
        assert arrived.empty()
