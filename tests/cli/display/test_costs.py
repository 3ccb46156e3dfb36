"""Costs as text."""

from __future__ import annotations

import pytest
from uncaged_cli.display.costs import dollars, money


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (0.0, "$0.00"),
        (0.5, "$0.50"),
        (0.125, "$0.125"),
        (0.0999999, "$0.10"),
        (0.00101, "$0.00101"),
        (0.000000123456, "$0.0000001235"),
        (1.0, "$1.00"),
        (12_345.678, "$12,345.68"),
    ],
)
def test_dollars_have_cents_and_small_sums_the_figures_that_count(cost: float, words: str) -> None:
    """Never in powers of ten, and never rounded to nothing."""
    assert dollars(cost) == words


def test_what_is_not_known_is_said() -> None:
    """A sum with a hole in it does not look like a sum."""
    assert money(0.5, unpriced=True) == "$0.50 and an unknown price"
    assert money(0.0, unpriced=True) == "price unknown"
    assert money(0.0, unpriced=False) == ""
