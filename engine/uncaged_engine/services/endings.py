"""Report on a thread that stopped: exit code, message, and the next useful commands."""

from __future__ import annotations

from ..threads.ending import Ending, ending_of

__all__ = ["Ending", "ending_of"]
