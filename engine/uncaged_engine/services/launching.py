"""Start of a flow's worker before its thread is prepared."""

from __future__ import annotations

from ..worker.client import Launching, rouse_flow

__all__ = ["Launching", "rouse_flow"]
