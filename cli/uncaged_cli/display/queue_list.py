"""Queues and workers of a shared store, as rows of a table, words and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .durations import spell
from .output import Piece, Styled

if TYPE_CHECKING:
    from uncaged_engine.services.shared import QueueSettings, StoreWorker
    from uncaged_engine.shared.queues import FlowQueue
    from uncaged_engine.shared.waiting import QueueState

QUEUE_HEADERS = ("flow", "waiting", "running", "settings", "why they wait")
WORKER_HEADERS = ("worker", "threads", "slots", "since", "flows", "offers", "state")


def spell_queue(queue: FlowQueue) -> str:
    """Return a queue's settings as the options that set them."""
    options = {
        "--concurrency": None if queue.concurrency is None else str(queue.concurrency),
        "--rate": None if queue.rate is None else str(queue.rate),
        "--priority": str(queue.priority) if queue.priority else None,
        "--needs": ",".join(queue.needs) or None,
    }
    return " ".join(f"{name} {value}" for name, value in options.items() if value) or "no settings"


def spell_store(settings: QueueSettings) -> str:
    """Return the settings for all threads as the options that set them."""
    options = {"--concurrency": settings.concurrency, "--agents": settings.agents}
    return (
        " ".join(f"{name} {value}" for name, value in options.items() if value is not None)
        or "no settings"
    )


def queue_row(queue: QueueState) -> list[Piece]:
    """Return a queue's row under `QUEUE_HEADERS`."""
    options = spell_queue(queue.settings) if queue.settings.document() else ""
    flow = Styled(queue.flow, "cyan")
    return [flow, str(queue.waiting), str(queue.running), options, queue.reason]


def worker_row(worker: StoreWorker, now_ms: int) -> list[Piece]:
    """Return a worker's row under `WORKER_HEADERS`."""
    offer = worker.offer
    return [
        Styled(worker.name, "cyan"),
        str(worker.threads),
        str(offer.slots),
        spell(max(0, now_ms - worker.since_ms)),
        "all" if offer.flows is None else ", ".join(sorted(offer.flows)),
        ", ".join(sorted(offer.offers)),
        "drains" if worker.drains else "",
    ]


def queues_document(
    settings: QueueSettings, queues: Sequence[QueueState], workers: Sequence[StoreWorker]
) -> dict[str, object]:
    """Return all as JSON values."""
    return {
        "concurrency": settings.concurrency,
        "agents": settings.agents,
        "queues": [
            {
                "flow": one.flow,
                "waiting": one.waiting,
                "running": one.running,
                "reason": one.reason,
                "settings": one.settings.document(),
            }
            for one in queues
        ],
        "workers": [
            {
                "worker": one.name,
                "threads": one.threads,
                "slots": one.offer.slots,
                "offers": sorted(one.offer.offers),
                "flows": None if one.offer.flows is None else sorted(one.offer.flows),
                "engine": one.engine,
                "sinceMs": one.since_ms,
                "drains": one.drains,
            }
            for one in workers
        ],
    }
