"""Guard of listeners on loopback (token, host, origin), and whether a client is still there."""

from __future__ import annotations

from ..listening.asgi import GONE, guarded
from ..listening.guard import LOOPBACK, Guard

__all__ = ["GONE", "LOOPBACK", "Guard", "guarded"]
