"""The sixty broken flows, of thirteen families."""

from __future__ import annotations

from collections.abc import Sequence

from . import code, files, pages, programs, services
from .case import BrokenFlow

__all__ = ["broken_flows", "sampled"]

QUICK = (
    *("api-field-1", "csv-column-1", "file-path-1"),
    *("program-option-1", "program-policy-1", "code-edge-1"),
)
"""A tenth of them."""


def broken_flows(seed: int, url: str, other: str) -> list[BrokenFlow]:
    """Return all cases of a seed, for services at two addresses."""
    return [
        *services.cases(seed, url, other),
        *files.cases(seed),
        *programs.cases(seed),
        *code.cases(seed),
        *pages.cases(seed, url),
    ]


def sampled(
    cases: Sequence[BrokenFlow], *, quick: bool, only: Sequence[str] = ()
) -> list[BrokenFlow]:
    """Return the cases to try. only: beginnings of names, or families."""
    return [
        case
        for case in cases
        if (not quick or case.name in QUICK)
        and (not only or any(case.name.startswith(one) or case.family == one for one in only))
    ]
