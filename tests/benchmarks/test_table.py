"""The verdicts of the table, and what is printed of them."""

from __future__ import annotations

import pytest

from benchmarks.table import Row, as_document, ratios, render


def row(
    *values: float,
    reach: float | None = 2.0,
    exact: bool = False,
    missed: str = "it is slow",
    remark: str = "",
) -> Row:
    return Row(
        figure="f",
        title="a figure",
        values=values,
        unit="×",
        baseline="7 µs",
        reach=reach,
        exact=exact,
        missed=missed,
        remark=remark,
    )


@pytest.mark.parametrize(
    ("values", "ok"),
    [
        ((1.0, 1.9, 9.0), True),
        ((2.0,), True),
        ((1.0, 2.1, 2.2), False),
        ((1.0, 3.1), False),
        ((0.5, 3.0), True),
    ],
)
def test_the_median_of_the_rounds_decides(values: tuple[float, ...], ok: bool) -> None:
    """A single slow round spoils nothing, and a single quick round saves nothing."""
    assert row(*values).ok is ok


@pytest.mark.parametrize(("value", "ok"), [(1.0, True), (0.98, False), (1.02, False)])
def test_an_exact_reach_is_met_to_the_digit(value: float, ok: bool) -> None:
    """A count below its reach is as wrong as one above it: a flush too few loses a step."""
    assert row(value, reach=1.0, exact=True).ok is ok


def test_a_missed_reach_is_explained() -> None:
    """The explanation is below its row, and says when the best round was within the reach."""
    assert row(3.0, 4.0).words == "missed: it is slow"
    assert row(1.5, 4.0, 5.0).words == "missed: it is slow; its best round was within the reach"
    assert "    missed: it is slow\n" in render([row(3.0, 4.0), row(1.0)])


def test_a_reach_that_was_met_needs_no_words() -> None:
    """A row is explained only if it missed its reach; a remark is printed in either case."""
    assert row(1.0).words == ""
    assert row(1.0, remark="by the way").words == "by the way"
    assert row(3.0, remark="by the way").words == "missed: it is slow; by the way"


def test_a_row_without_a_reach_has_no_verdict() -> None:
    """A peer's row informs and is not judged."""
    assert row(9.0, reach=None).ok is None
    assert "missed" not in render([row(9.0, reach=None)])


def test_what_was_not_measured_is_said() -> None:
    """A machine that lacks a tool gets a row that says so, and no verdict."""
    unmeasured = row(remark="strace is not installed")
    assert unmeasured.ok is None
    assert "a figure  not measured" in render([unmeasured])
    assert as_document([unmeasured])[0]["median"] is None


def test_a_row_shows_median_spread_baseline_reach_and_verdict() -> None:
    """The whole line, as a person reads it."""
    assert (
        render([row(1.0, 1.25, 3.0)]).splitlines()[1]
        == "a figure  1.25 × (1–3)        7 µs                  ≤ 2 ×  ok"
    )
    assert render([row(1.0, reach=1.0, exact=True)]).splitlines()[1].endswith("exactly 1 ×  ok")


def test_ratios_are_taken_round_by_round() -> None:
    """A round in which the machine was slow for both sides gives the same ratio as a quick one."""
    assert ratios([(2.0, 1.0), (20.0, 10.0)]) == (2.0, 2.0)
