"""The forty tasks: ten rules of each of four families."""

from __future__ import annotations

from collections.abc import Sequence

from . import browser, http, repository, shell
from .rule import Rule

__all__ = ["FAMILIES", "RULES", "sampled"]

FAMILIES = ("shell", "http", "browser", "repository")
RULES: tuple[Rule, ...] = (*shell.RULES, *http.RULES, *browser.RULES, *repository.RULES)
QUICK = (
    "shell-sum-of-region",
    "http-price-in-currency",
    "repository-version-everywhere",
    "browser-search",
)
"""A tenth of them, one of each family."""


def sampled(*, quick: bool, only: Sequence[str] = ()) -> list[Rule]:
    """Return the rules to try. only: names, beginnings of names, or families."""
    return [
        rule
        for rule in RULES
        if (not quick or rule.name in QUICK)
        and (not only or any(rule.name.startswith(word) for word in only))
    ]
