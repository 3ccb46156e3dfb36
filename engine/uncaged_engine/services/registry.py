"""Entry points by group and name, and the handler of an effect kind."""

from __future__ import annotations

from ..effect_kinds import KNOWN, handler_for
from ..plugins import (
    AGENTS,
    ROUTES,
    distribution_of,
    find,
    installation,
    is_known,
    names,
    ours,
)

__all__ = [
    "AGENTS",
    "KNOWN",
    "ROUTES",
    "distribution_of",
    "find",
    "handler_for",
    "installation",
    "is_known",
    "names",
    "ours",
]
