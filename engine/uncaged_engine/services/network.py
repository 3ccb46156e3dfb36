"""Network stream to checked addresses, and the rules of a policy for hosts."""

from __future__ import annotations

from ..network.connection import Backend, Lookup, Seat, system_lookup
from ..network.problems import Stopped, Unheard, WebProblem
from ..network.proxies import proxy_for
from ..network.rules import HostPattern, Rules, read_patterns
from ..network.target import read_target, redirect_target

__all__ = [
    "Backend",
    "HostPattern",
    "Lookup",
    "Rules",
    "Seat",
    "Stopped",
    "Unheard",
    "WebProblem",
    "proxy_for",
    "read_patterns",
    "read_target",
    "redirect_target",
    "system_lookup",
]
