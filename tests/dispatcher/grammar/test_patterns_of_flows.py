"""Patterns of flows: the check of a bundle's build and the grammar accept the same ones."""

from __future__ import annotations

import pytest
from uncaged_bundles.builders.recipes.grammar_check import check_pattern
from uncaged_bundles.shapes import ShapeError
from uncaged_dispatcher.grammar import GrammarError, load


def accepted(pattern: str) -> tuple[bool, bool]:
    """Return whether the build and the grammar accept a pattern."""
    answers = []
    for check in (
        lambda: check_pattern(pattern, ("leaf", "cups"), ("patterns", 0)),
        lambda: load(f"<Start> = {pattern};", start_value_required=False),
    ):
        try:
            check()
        except (ShapeError, GrammarError):
            answers.append(False)
        else:
            answers.append(True)
    return answers[0], answers[1]


@pytest.mark.parametrize(
    "pattern",
    [
        "pour tea",
        "pour $(leaf:wildcard) $(cups:number)?",
        "(pour | brew (some | more)?) $(leaf)",
        "pour it (slowly)* (now)+",
        "what's up, doc: 100% & 5/6",
        r"really\? \(yes\) \| \$5 \\",
        "お茶 (を)? いれて",
    ],
)
def test_a_pattern_that_the_build_accepts_is_a_rule(pattern: str) -> None:
    """Words, captures, groups, repetitions and escapes are patterns for both."""
    assert accepted(pattern) == (True, True)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "pour (tea",
        "pour) tea",
        "( | a) b",
        "a ()",
        "$(a b)",
        "$(leaf:thing)",
        "$ a",
        "a \\",
        "$(leaf",
    ],
)
def test_a_pattern_that_the_build_refuses_is_no_rule(pattern: str) -> None:
    """Unbalanced brackets, empty choices and broken captures are refused by both."""
    assert accepted(pattern) == (False, False)
