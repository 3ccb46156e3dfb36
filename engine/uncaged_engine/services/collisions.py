"""Settings of the person for sentences with several readings, without the reader of the file."""

from __future__ import annotations

from ..settings.config import CollisionSettings, Strategy

__all__ = ["CollisionSettings", "Strategy"]
