"""Entry points by group and name."""

from __future__ import annotations

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
    "ROUTES",
    "distribution_of",
    "find",
    "installation",
    "is_known",
    "names",
    "ours",
]
