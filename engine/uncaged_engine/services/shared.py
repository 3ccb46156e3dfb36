"""Dispatch of a shared store's threads, for implementations outside the core."""

from __future__ import annotations

from ..shared.dispatch import (
    Dispatcher,
    DrivenThread,
    DriveThread,
    Recorder,
    SharedStore,
    SteerThread,
    ThreadExchange,
    ThreadQueue,
)
from ..threads.steering import SteeringEvent

__all__ = [
    "Dispatcher",
    "DriveThread",
    "DrivenThread",
    "Recorder",
    "SharedStore",
    "SteerThread",
    "SteeringEvent",
    "ThreadExchange",
    "ThreadQueue",
]
