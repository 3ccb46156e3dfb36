"""Network stream to checked addresses, and the rules of a policy for hosts."""

from __future__ import annotations

from ..network.connection import Backend, Lookup, NetworkSession, system_lookup
from ..network.problems import RequestCancelled, StaleConnection, WebProblem
from ..network.proxies import proxy_for
from ..network.rules import HostPattern, HostRules, read_patterns
from ..network.target import read_target, redirect_target

__all__ = [
    "Backend",
    "HostPattern",
    "HostRules",
    "Lookup",
    "NetworkSession",
    "RequestCancelled",
    "StaleConnection",
    "WebProblem",
    "proxy_for",
    "read_patterns",
    "read_target",
    "redirect_target",
    "system_lookup",
]
