"""Reasons why threads of a shared store wait, and an overview of its queues."""

from __future__ import annotations

from functools import cached_property

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.records import dataclass

from .admission import StoreLoad, TurnKind, WorkerOffer, wait_reason
from .dispatch import SharedStore
from .queues import FlowQueue, QueueSettings, read_settings

UNREADABLE = "waits until the settings of the queues can be read: see `uncaged-workflow queues`"


class WaitReasons:
    """Reasons at one moment; what they need is read when the first one is asked for."""

    def __init__(self, backend: SharedStore) -> None:
        self._backend = backend

    def of(self, kind: TurnKind, other_version: str = "") -> str:
        """Return why a turn waits, as a sentence without a subject. other_version: see
        `DrivenThread`.
        """
        if other_version:
            return f"waits for a worker of version {other_version}"
        try:
            return wait_reason(kind, self._settings, self._offers, self._load)
        except DamagedError:
            return UNREADABLE

    @cached_property
    def _settings(self) -> QueueSettings:
        return read_settings(self._backend.documents)

    @cached_property
    def _offers(self) -> list[WorkerOffer]:
        return [one.offer for one in self._backend.queue.workers() if not one.drains]

    @cached_property
    def _load(self) -> StoreLoad:
        return self._backend.queue.load(self._settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Queue of one flow. waiting, running: numbers of its threads. reason: why those wait; empty if
    none does.
    """

    flow: str
    settings: FlowQueue
    waiting: int
    running: int
    reason: str


def queue_states(backend: SharedStore) -> tuple[QueueSettings, list[QueueState]]:
    """Return the settings of a store, and the queue of each flow that has settings or threads, by
    name. Raises: DamagedError: the settings cannot be read.
    """
    settings = read_settings(backend.documents)
    waiting, load, reasons = (
        backend.queue.waiting(),
        backend.queue.load(settings),
        WaitReasons(backend),
    )
    kinds = {*waiting, *load.running}
    return settings, [
        QueueState(
            flow=flow,
            settings=settings.of(flow),
            waiting=sum(count for kind, count in waiting.items() if kind.flow == flow),
            running=load.of(flow),
            reason="; ".join(sorted({reasons.of(kind) for kind in waiting if kind.flow == flow})),
        )
        for flow in sorted({*settings.flows, *(kind.flow for kind in kinds)})
    ]
