"""Settings of one agent, checked key by key."""

from __future__ import annotations

from ..settings.agent import known, seconds, text, texts, variables

__all__ = ["known", "seconds", "text", "texts", "variables"]
