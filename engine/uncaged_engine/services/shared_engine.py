"""The engine of a store that several machines share."""

from __future__ import annotations

from ..shared_engine import SharedEngine

__all__ = ["SharedEngine"]
