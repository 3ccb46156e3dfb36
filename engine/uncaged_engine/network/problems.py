"""Whatever goes wrong with a request is one of these, and none of them is a bug of the engine."""

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
    """The request came to nothing; the bundle hears kind and message."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class StaleConnection(WebProblem):
    """Nothing came back over a connection that had been used before."""


class RequestCancelled(Exception):
    """Somebody asked to stop."""
