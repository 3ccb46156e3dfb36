"""API keys that a person stored, and where each is kept."""

from __future__ import annotations

from ..settings.keys import checked, names, put, remove, source_of

__all__ = ["checked", "names", "put", "remove", "source_of"]
