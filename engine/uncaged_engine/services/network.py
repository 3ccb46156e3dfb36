"""Rules of a policy for hosts, routes to servers, and the errors of requests."""

from __future__ import annotations

from ..network.connection import Lookup, NetworkSession, system_lookup
from ..network.problems import (
    BrokenReply,
    NoReply,
    ProxyRefused,
    RequestCancelled,
    StaleConnection,
    WebProblem,
)
from ..network.route import Route, proxy_for
from ..network.rules import HostPattern, HostRules, read_patterns
from ..network.target import read_target, redirect_target

__all__ = [
    "BrokenReply",
    "HostPattern",
    "HostRules",
    "Lookup",
    "NetworkSession",
    "NoReply",
    "ProxyRefused",
    "RequestCancelled",
    "Route",
    "StaleConnection",
    "WebProblem",
    "proxy_for",
    "read_patterns",
    "read_target",
    "redirect_target",
    "system_lookup",
]
