"""Rules of a policy for hosts, and the errors of requests."""

from __future__ import annotations

from ..network.problems import RequestCancelled, StaleConnection, WebProblem
from ..network.proxies import proxy_for
from ..network.rules import HostPattern, HostRules, read_patterns
from ..network.target import read_target, redirect_target

__all__ = [
    "HostPattern",
    "HostRules",
    "RequestCancelled",
    "StaleConnection",
    "WebProblem",
    "proxy_for",
    "read_patterns",
    "read_target",
    "redirect_target",
]
