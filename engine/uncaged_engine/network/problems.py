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


class StaleConnection(WebProblem):
    """Missing reply on a reused connection."""


class RequestCancelled(Exception):
    """Cancellation of a request."""
