"""Titles and headings that are reworded, and those that say another thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from uncaged_browser.healing.drift import begin_comparison, is_reworded
from uncaged_browser.healing.healed import HealedExpectation, healed_in, outcome_of
from uncaged_browser.operations import Operation, read_operation
from uncaged_browser.problems import BrowserProblem

CLICK = {"do": "click", "target": {"role": "link", "name": "Details"}}
NEXT = read_operation({"do": "fill", "target": {"label": "Name"}, "text": "x"})


def clicked(**expect: str) -> Operation:
    return read_operation({**CLICK, "expect": expect})


def compared(
    operation: Operation, drift: Sequence[dict[str, Any]], *, there: bool, following: Any = NEXT
) -> HealedExpectation | None:
    """Compare; the element of the next step is there or not."""
    comparison = begin_comparison(operation, drift, following)
    problem = None if there else BrowserProblem("not-found", "no element")
    try:
        next(comparison)
        while True:
            comparison.throw(problem) if problem else comparison.send({})
    except StopIteration as stop:
        found: HealedExpectation | None = stop.value
        return found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Details", "More details"),
        ("Settings", "Preferences"),
        ("* results", "12 results"),
        ("Your orders (*)", "Orders (7)"),
    ],
)
def test_a_rewording_is_one(pattern: str, text: str) -> None:
    assert is_reworded(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Blue Lamp", "Blue Lamp Shade"),
        ("Order saved", "Order not saved"),
        ("Payment", "Payment failed"),
        ("Checkout", "Search"),
        ("Results", "No results"),
        ("Send", "Sorry"),
        ("*", "Anything"),
    ],
)
def test_another_thing_is_no_rewording(pattern: str, text: str) -> None:
    """Other data, a negation, a failure, another page."""
    assert not is_reworded(pattern, text)


def test_a_reworded_page_is_healed_if_the_next_element_is_there() -> None:
    """The outcome has both texts instead of the drift; without the next element, or as the last
    step, the drift stays, and so it does where the address differs as well.
    """
    operation = clicked(title="Details", url="/form")
    drift = [{"what": "title", "expected": "Details", "found": "More details"}]
    found = compared(operation, drift, there=True)
    assert found is not None
    assert found.expect.document() == {"title": "More details", "url": "/form"}
    outcome = outcome_of({"url": "u", "drift": drift}, [found])
    assert isinstance(outcome, dict) and "drift" not in outcome
    assert outcome["healed"]["from"] == 'title "Details"'
    assert outcome["healed"]["to"] == 'title "More details"'
    assert healed_in(outcome) == (found,)
    assert compared(operation, drift, there=False) is None
    assert compared(operation, drift, there=True, following=None) is None
    assert compared(operation, drift, there=True, following=read_operation({"do": "tabs"})) is None
    moved = [*drift, {"what": "url", "expected": "/form", "found": "/login"}]
    assert compared(operation, moved, there=True) is None


def test_numbers_of_a_reworded_heading_stay_any() -> None:
    """A pattern with wildcards becomes one with wildcards; one that several headings fit, none."""
    operation = clicked(heading="Orders (*)")
    drift = [{"what": "heading", "expected": "Orders (*)", "found": ["Home", "My orders (12)"]}]
    found = compared(operation, drift, there=True)
    assert found is not None and found.expect.heading == "My orders (*)"
    twice = [{**drift[0], "found": ["My orders (1)", "Your orders (2)"]}]
    assert compared(operation, twice, there=True) is None
