"""Errors of network requests. The bundle gets each of them as a failure."""

from __future__ import annotations

from typing import Literal

ProblemKind = Literal[
    "effect",
    "policy",
    "refused-address",
    "dns",
    "connect",
    "tls",
    "timeout",
    "redirects",
    "too-large",
    "body",
    "status",
    "selector",
    "search",
]


class WebProblem(Exception):
    """Failure of a request; the bundle gets kind and message."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NoReply(WebProblem):
    """Missing reply of a server that a connection was made to. reason: in the library's words."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__("connect", f"{server} gave no answer: {reason}")
        self.reason = reason


class StaleConnection(NoReply):
    """Missing reply on a reused connection."""


class ProxyRefused(NoReply):
    """Refusal of a tunnel by the caller's proxy."""


class BrokenReply(WebProblem):
    """Reply that broke off. reason: in the library's words."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__("body", f"the answer of {server} broke off: {reason}")
        self.reason = reason


class RequestCancelled(Exception):
    """Cancellation of a request."""
