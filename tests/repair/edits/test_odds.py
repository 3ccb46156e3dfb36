"""Odds of edits: the table of kinds and what is made of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from uncaged_repair.edits.candidates import EXPRESSIONS, STATEMENTS, candidates
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.odds import KINDS, WITHOUT_FIGURES, highest_weight, weight_of
from uncaged_repair.edits.spans import read_source

DECLARED = {kind for kinds in (*STATEMENTS.values(), *EXPRESSIONS.values()) for kind in kinds}
PROGRAM = """\
LIMIT = 10
class Store:
    def __init__(self, rows, size=3):
        self.rows = rows
    def find(self, key, default=None):
        total = 0
        for row in self.rows[1:]:
            if row is None or row["key"] != key:
                continue
            try:
                total += int(row["value"]) * 2 - 1
            except (KeyError, ValueError):
                raise LookupError(f"{key} in {row}") from None
        return total if total > LIMIT and not default else default
"""


def test_each_kind_of_edit_has_odds_and_each_row_has_a_kind() -> None:
    """The table has a row for each kind that an operator declares, and no other."""
    assert KINDS.keys() | WITHOUT_FIGURES.keys() == DECLARED
    assert not KINDS.keys() & WITHOUT_FIGURES.keys()


def test_the_weight_of_an_edit_is_within_the_bound_of_its_kind() -> None:
    for kind in DECLARED:
        usual = weight_of(kind, 1.0, ())
        assert 0 < weight_of(kind, 0.1, ()) < usual <= 1
        assert weight_of(kind, 1.0, ("hides the failure",)) < usual
        best = weight_of(kind, 1.0, ("fits the error", "named by the error", "similar name"))
        assert usual <= best <= highest_weight((kind,))


@pytest.mark.parametrize("errors", [(), (("UnboundLocalError", "no value for 'totl' yet"),)])
def test_candidates_made_on_demand_come_in_the_order_of_their_scores(
    errors: tuple[tuple[str, str], ...],
) -> None:
    """No operator yields an edit that is better than its bound: the scores never rise, whatever the
    suspicion of the lines.
    """
    source = read_source("x.py", PROGRAM.replace("return total if", "return totl if").encode())
    suspicion = {line: (line * 7 % 11 + 1) / 12 for line in range(1, 16)}
    found = list(candidates(source, suspicion, ValueFacts(errors=errors)))
    assert {edit.kind for _, edit in found} <= DECLARED
    assert len({edit.kind for _, edit in found}) > 40
    assert all(first[0] >= second[0] for first, second in pairwise(found))


def test_the_first_candidates_are_made_without_the_others() -> None:
    """The queue of a long file starts before all of its edits are made."""
    text = "".join(PROGRAM.replace("Store", f"Store{number}") for number in range(20))
    source = read_source("x.py", text.encode())
    made = 0

    class Counted(dict[int, float]):
        def get(self, line: int, default: float = 0.0) -> float:  # type: ignore[override]
            nonlocal made
            made += 1
            return super().get(line, default)

    suspicion = Counted({line: 1.0 / line for line in range(1, 20 * 14)})
    queue = candidates(source, suspicion, ValueFacts())
    for _ in range(50):
        next(queue)
    first = made
    assert sum(1 for _ in queue) > 3000
    assert made > 3 * first
