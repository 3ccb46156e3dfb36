"""Classification of one repair against the released file."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal

from .differential import Comparison

Verdict = Literal["as upstream", "equal", "overfit", "unknown", "nothing", "error"]
VERDICTS: Sequence[Verdict] = ("as upstream", "equal", "overfit", "unknown", "nothing", "error")
NOT_REPAIRED = 3
ENOUGH = 20
"""Fewer equal outcomes say nothing."""


def as_upstream(released: Mapping[str, str], repaired: Mapping[str, str | None]) -> bool:
    """Return whether each repaired file has the released syntax tree."""
    return bool(repaired) and all(
        path in released and text is not None and _tree(text) == _tree(released[path])
        for path, text in repaired.items()
    )


def verdict_of(
    *, exit_code: int, committed: bool, upstream: bool, comparison: Comparison | None
) -> Verdict:
    """Return the verdict; *comparison* is only needed where something else than upstream's text was
    committed.
    """
    if not committed:
        return "nothing" if exit_code == NOT_REPAIRED else "error"
    if exit_code:
        return "error"
    if upstream:
        return "as upstream"
    if comparison is None:
        return "unknown"
    if comparison.differing or comparison.still_failing:
        return "overfit"
    return "equal" if comparison.compared >= ENOUGH else "unknown"


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return text
