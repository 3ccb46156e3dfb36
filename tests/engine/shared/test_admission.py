"""Admission: which waiting turns a worker takes, and why others wait."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uncaged_engine.shared.admission import (
    StoreLoad,
    TurnKind,
    WaitingTurn,
    WorkerOffer,
    admitted,
    turn_kind,
    wait_reason,
)
from uncaged_engine.shared.queues import FlowQueue, QueueSettings, StartRate

PLAIN = QueueSettings()
NO_LOAD = StoreLoad(running={}, begun={})
WORKER = WorkerOffer(slots=4, offers=frozenset({"browser"}))
REPORT, BILL = TurnKind(flow="report"), TurnKind(flow="bill")
CHILD = TurnKind(flow="report", is_child=True)


def waiting(
    kind: TurnKind, *, priority: int = 0, begun: bool = False, count: int = 1
) -> list[WaitingTurn]:
    return [
        WaitingTurn(id=f"{kind}{number}", kind=kind, priority=priority, since=number, begun=begun)
        for number in range(count)
    ]


def load(running: Mapping[TurnKind, int], **begun: int) -> StoreLoad:
    return StoreLoad(running=running, begun=begun)


def flows_of(
    turns: list[WaitingTurn],
    settings: QueueSettings = PLAIN,
    *,
    found: StoreLoad = NO_LOAD,
    offer: WorkerOffer = WORKER,
    free: int = 4,
) -> list[str]:
    """Return the flows of the turns that are admitted, in order."""
    return [one.kind.flow for one in admitted(turns, found, settings, offer, free=free)]


def settings_of(**flows: FlowQueue) -> QueueSettings:
    return QueueSettings(flows=flows)


@pytest.mark.parametrize(
    "kind",
    [
        REPORT,
        TurnKind(flow="a-b", needs=frozenset({"gpu", "agent:claude"}), is_later=True),
        TurnKind(flow="a", is_child=True),
        TurnKind(flow="a", is_child=True, is_nested=True, needs=frozenset({"browser"})),
    ],
)
def test_a_kind_is_read_from_its_spelling(kind: TurnKind) -> None:
    """The spelling is what the dispatcher stores with a turn."""
    assert turn_kind(str(kind)) == kind


def test_slots_bound_threads_and_not_children() -> None:
    """A child's parent has a slot already."""
    assert flows_of(waiting(REPORT, count=9), free=3) == ["report"] * 3
    assert flows_of(waiting(CHILD, count=9) + waiting(BILL), free=0) == ["report"] * 9


def test_a_worker_takes_what_it_serves_and_offers() -> None:
    """Needs are those of the thread and those of its queue's settings."""
    page = TurnKind(flow="page", needs=frozenset({"browser"}))
    turns = [*waiting(page), *waiting(REPORT), *waiting(BILL)]
    bare = WorkerOffer(slots=4)
    assert flows_of(turns, offer=bare) == ["bill", "report"]
    only = WorkerOffer(slots=4, flows=frozenset({"report"}))
    assert flows_of(turns, offer=only) == ["report"]
    needing = settings_of(bill=FlowQueue(needs=("gpu",)))
    assert flows_of(turns, needing) == ["page", "report"]
    both = WorkerOffer(slots=4, offers=frozenset({"browser", "gpu"}))
    assert flows_of(turns, needing, offer=both) == ["bill", "page", "report"]


def test_the_priorities_of_thread_and_flow_are_added() -> None:
    """Of equal ones the older is first."""
    turns = waiting(REPORT, priority=3, count=2) + waiting(BILL)
    assert flows_of(turns) == ["report", "report", "bill"]
    assert flows_of(turns, settings_of(bill=FlowQueue(priority=4))) == ["bill", "report", "report"]


def test_a_limit_counts_what_all_workers_run() -> None:
    """Of a flow with its children, and of the store without them."""
    turns = waiting(REPORT, count=5) + waiting(BILL)
    limited = settings_of(report=FlowQueue(concurrency=3))
    found = load({REPORT: 1, CHILD: 1, BILL: 7})
    assert flows_of(turns, limited, found=found) == ["bill", "report"]
    held = QueueSettings(concurrency=10)
    assert flows_of(turns, held, found=found) == ["bill", "report"]
    assert flows_of(turns, settings_of(report=FlowQueue(concurrency=0))) == ["bill"]


def test_a_limit_holds_no_child_of_a_thread_of_the_same_flow_back() -> None:
    """It would wait for its own parent."""
    nested = TurnKind(flow="report", is_child=True, is_nested=True)
    limited = settings_of(report=FlowQueue(concurrency=1, rate=StartRate(threads=1, seconds=9)))
    found = load({REPORT: 1}, report=1)
    assert flows_of(waiting(CHILD) + waiting(nested), limited, found=found) == ["report"]


def test_a_rate_counts_threads_that_begin() -> None:
    """One that a person resumed, or whose worker died, began before."""
    rated = settings_of(report=FlowQueue(rate=StartRate(threads=3, seconds=60)))
    found = load({}, report=2)
    assert flows_of(waiting(REPORT, count=4), rated, found=found) == ["report"]
    later = TurnKind(flow="report", is_later=True)
    full = load({}, report=3)
    again = waiting(later) + waiting(REPORT, begun=True)
    assert flows_of(again + waiting(BILL), rated, found=full) == ["bill", "report", "report"]


@pytest.mark.parametrize(
    ("kind", "settings", "workers", "found", "reason"),
    [
        (REPORT, PLAIN, [], NO_LOAD, "waits for a worker"),
        (REPORT, PLAIN, [WORKER], NO_LOAD, "waits for a worker"),
        (
            TurnKind(flow="a", needs=frozenset({"browser", "agent:claude"})),
            settings_of(a=FlowQueue(needs=("gpu",))),
            [WORKER],
            NO_LOAD,
            "waits for a worker that offers agent:claude and gpu",
        ),
        (
            REPORT,
            PLAIN,
            [WorkerOffer(slots=1, flows=frozenset({"bill"}))],
            NO_LOAD,
            "waits for a worker that takes report",
        ),
        (
            REPORT,
            settings_of(report=FlowQueue(concurrency=2)),
            [WORKER],
            load({REPORT: 2}),
            "waits: 2 of at most 2 threads of report run",
        ),
        (
            REPORT,
            QueueSettings(concurrency=2),
            [WORKER],
            load({BILL: 2}),
            "waits: 2 of at most 2 threads of the store run",
        ),
        (
            REPORT,
            settings_of(report=FlowQueue(rate=StartRate(threads=2, seconds=60))),
            [WORKER],
            load({}, report=2),
            "waits: 2 threads of report began in the last 60 s",
        ),
    ],
)
def test_a_thread_that_waits_has_a_reason(
    kind: TurnKind,
    settings: QueueSettings,
    workers: list[WorkerOffer],
    found: StoreLoad,
    reason: str,
) -> None:
    """It names what is lacking, or the limit that is reached."""
    assert wait_reason(kind, settings, workers, found) == reason
