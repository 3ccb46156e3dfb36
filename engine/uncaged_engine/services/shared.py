"""Dispatch of a shared store's threads, for implementations outside the core."""

from __future__ import annotations

from ..shared.dispatch import Dispatcher, DriveThread, Recorder, SharedStore, ThreadExchange

__all__ = ["Dispatcher", "DriveThread", "Recorder", "SharedStore", "ThreadExchange"]
