"""Effect kinds that are known, and the handler of one."""

from __future__ import annotations

from ..effect_kinds import KNOWN, handler_for

__all__ = ["KNOWN", "handler_for"]
