"""Candidates for a fix: changed recipes that the kinds of failures find in a case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from .case import FixCase, Recipe
from .machine import Machine

__all__ = ["KINDS", "FixCandidate", "FoundFixes", "find_candidates"]

KINDS = (
    "elsewhere",
    "refused_entry",
    "moved_element",
    "renamed_field",
    "renamed_option",
    "missing_command",
    "moved_path",
    "moved_address",
    "required_field",
    "wrong_type",
    "short_timeout",
    "wrong_script",
)
"""Modules of `kinds`; each has a function `candidates`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixCandidate:
    """A changed recipe. why: one sentence: what was found, and what changes."""

    kind: str
    recipe: Recipe
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFixes:
    """candidates: distinct recipes. looked: what each kind found that gives no candidate."""

    candidates: tuple[FixCandidate, ...]
    looked: tuple[str, ...]


Kind = Callable[[FixCase, Machine], Iterator[FixCandidate | str]]
"""Yields candidates, and sentences on what it looked at in vain."""


def find_candidates(case: FixCase, machine: Machine) -> FoundFixes:
    """Return what all kinds find."""
    candidates: dict[str, FixCandidate] = {}
    looked: list[str] = []
    for name in KINDS:
        kind: Kind = import_module(f"{__package__}.kinds.{name}").candidates
        for one in kind(case, machine):
            if isinstance(one, str):
                looked.append(one)
            elif one.recipe != case.recipe:
                candidates.setdefault(json.dumps(one.recipe, sort_keys=True), one)
    return FoundFixes(candidates=tuple(candidates.values()), looked=tuple(looked))
