"""Dispatch of a shared store's threads, for implementations outside the core."""

from __future__ import annotations

from ..door.effects import AgentPermits
from ..shared.admission import (
    StoreLoad,
    Turn,
    TurnKind,
    WaitingTurn,
    WorkerOffer,
    admitted,
    turn_kind,
)
from ..shared.dispatch import (
    Dispatcher,
    DispatcherChoice,
    DrivenThread,
    DriveThread,
    EndedThread,
    LeaveThreads,
    Recorder,
    Report,
    SharedStore,
    SteerThread,
    StoreWorker,
    SubmittedThreads,
    ThreadExchange,
    ThreadHandedOver,
    ThreadProgress,
    ThreadQueue,
    ThreadRetention,
)
from ..shared.queues import DOCUMENT as QUEUE_DOCUMENT
from ..shared.queues import QueueSettings, parse_need, parse_settings
from ..threads.steering import SteeringEvent

__all__ = [
    "QUEUE_DOCUMENT",
    "AgentPermits",
    "Dispatcher",
    "DispatcherChoice",
    "DriveThread",
    "DrivenThread",
    "EndedThread",
    "LeaveThreads",
    "QueueSettings",
    "Recorder",
    "Report",
    "SharedStore",
    "SteerThread",
    "SteeringEvent",
    "StoreLoad",
    "StoreWorker",
    "SubmittedThreads",
    "ThreadExchange",
    "ThreadHandedOver",
    "ThreadProgress",
    "ThreadQueue",
    "ThreadRetention",
    "Turn",
    "TurnKind",
    "WaitingTurn",
    "WorkerOffer",
    "admitted",
    "parse_need",
    "parse_settings",
    "turn_kind",
]
