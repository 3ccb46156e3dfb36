"""Events of a worker of a shared store."""

from __future__ import annotations

import pytest
from testbed.documents import check_document
from uncaged_bundles.ids import ThreadId
from uncaged_cli.display.worker_events import WorkerEvents
from uncaged_engine.services.shared import WorkerOffer

FIRST, SECOND = ThreadId("01J0000000000000000000000A"), ThreadId("01J0000000000000000000000B")


def test_an_ending_worker_prints_how_many_threads_it_drives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Threads that were left do not count; notes go to standard error."""
    events = WorkerEvents(as_json=False)
    events.started("postgresql://h/d", WorkerOffer(slots=1))
    events.driven(FIRST)
    events.driven(SECOND)
    events.stopping()
    events.left(SECOND, "completed")
    events.stopping()
    events.interrupted()
    events.left(FIRST, "limit")
    events.stopping()
    events.interrupted()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "worker of postgresql://h/d, 1 thread at a time",
        f"thread {FIRST}: driven here",
        f"thread {SECOND}: driven here",
        "takes no more threads, and ends once 2 threads can be left after a step; Ctrl-C again ends at once",
        f"thread {SECOND}: completed",
        "takes no more threads, and ends once 1 thread can be left after a step; Ctrl-C again ends at once",
        "ended at once; other workers take over 1 thread that it drove",
        f"thread {FIRST}: limit",
        "takes no more threads, and ends: it drives none",
        "ended at once",
    ]


def test_events_as_json_have_the_documented_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line has its schema; the note of the begin is no event."""
    events = WorkerEvents(as_json=True)
    events.started(
        "postgresql://h/d",
        WorkerOffer(slots=4, offers=frozenset({"gpu", "browser"}), flows=frozenset({"b", "a"})),
    )
    events.driven(FIRST)
    events.warned(FIRST, "cannot be driven here: why")
    events.stopping()
    events.left(FIRST, "interrupted")
    events.interrupted()
    out, err = capsys.readouterr()
    check_document(["work", "--json"], out)
    assert out.splitlines()[2:4] == [
        '{"event":"stopping","threads":1}',
        f'{{"threadId":"{FIRST}","event":"left","status":"interrupted"}}',
    ]
    assert err == ("worker of postgresql://h/d, 4 threads of a, b at a time; offers browser, gpu\n")
