"""Fixes of web flows and of roles' time limits as data: what a replay of the page found, and the
step at which a fork starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from uncaged_capture.fixing.candidates import FoundFixes, find_candidates
from uncaged_capture.fixing.case import FixCase, read_case
from uncaged_capture.fixing.machine import Machine

STEPS = [
    {"do": "navigate", "url": "http://a.test/"},
    {"do": "fill", "target": [{"label": "Title"}], "text": "x"},
    {"do": "click", "target": [{"role": "button", "name": "Next"}]},
]
RECIPE = {"kind": "web", "name": "note", "parameters": [], "steps": STEPS}
NEW_STEPS = [*STEPS[:2], {"do": "click", "target": [{"role": "button", "name": "Go on"}]}]
HEALED = {"step": 3, "from": 'button "Next"', "to": 'button "Go on"', "score": 0.9, "why": ["x"]}
MISSING = {"kind": "not-found", "message": "no visible element"}
FILLED: dict[str, object] = {"outcome": {"url": "http://a.test/"}, "acted": True}


def case(page: object, *, filled: dict[str, object] = FILLED) -> FixCase:
    """The case of a flow that loads a page, fills in a field, and does not find a button."""
    records: list[dict[str, Any]] = [{"parameters": {"params": {}}}]
    outcomes: list[dict[str, object]] = [
        {"outcome": {"url": "http://a.test/"}, "checkpoint": "abc"},
        filled,
        {"error": MISSING},
    ]
    for seq, (step, outcome) in enumerate(zip(STEPS, outcomes, strict=True), 1):
        records += [{"seq": seq, "intent": {"browser": step}}, {"seq": seq, **outcome}]
    end = {"end": "completed", "result": {"success": False, "message": "step 3"}}
    return read_case(RECIPE, [*records, end], page=page)  # type: ignore[arg-type]


def found(case: FixCase) -> FoundFixes:
    return find_candidates(case, Machine(environment=dict(os.environ), directory=Path.cwd()))


def stopped(step: int, *, held: bool) -> dict[str, object]:
    return {"step": step, "held": held, "reason": "so it is"}


@pytest.mark.parametrize("end", [None, stopped(3, held=True)])
def test_what_was_healed_is_the_one_change(end: object) -> None:
    """Also if the healed step would send something."""
    [one] = found(case({"steps": NEW_STEPS, "healed": [HEALED], "stopped": end})).candidates
    assert one.recipe["steps"] == NEW_STEPS
    assert one.why == 'step 3: button "Next" is button "Go on" by now'


@pytest.mark.parametrize(
    ("page", "report"),
    [
        (None, "a web flow is fixed if"),
        ({"problem": "there is no browser"}, "cannot be looked at: there is no browser"),
        ({"steps": STEPS, "healed": [], "stopped": None}, "run the flow again"),
        (
            {"steps": STEPS, "healed": [], "stopped": stopped(2, held=True)},
            "step 2 is not done again (so it is)",
        ),
        (
            {"steps": STEPS, "healed": [], "stopped": stopped(3, held=False)},
            "step 3 fails on the page as it is by now: so it is",
        ),
        (
            {"steps": NEW_STEPS, "healed": [HEALED], "stopped": stopped(3, held=False)},
            'step 3: button "Next" is button "Go on" by now; but step 3 fails on the page',
        ),
    ],
)
def test_a_page_that_shows_no_change_gets_a_report(page: object, report: str) -> None:
    """Nothing is changed if the replay ended before the failed step, or failed there."""
    fixes = found(case(page))
    assert fixes.candidates == ()
    assert any(report in one for one in fixes.looked), fixes.looked


def test_a_fork_starts_at_a_loaded_page_if_steps_changed_it() -> None:
    """Steps that only read are kept; those that act are done again, and are named."""
    acted, read = case(None), case(None, filled={"outcome": {"text": "x"}})
    assert (acted.keep, acted.fork_at, acted.done_again) == (2, 1, (2,))
    assert (read.keep, read.fork_at, read.done_again) == (2, 2, ())


def test_a_step_that_was_healed_in_the_failed_run_may_change() -> None:
    """The prefix ends before it, so that its new name is no difference."""
    healed = case(None, filled={"outcome": {"url": "http://a.test/", "healed": {}}, "acted": True})
    assert healed.keep == 1


@pytest.mark.parametrize(("limits", "longer"), [({"timeout_s": 20}, 80.0), ({}, None)])
def test_a_role_gets_more_time_if_its_flow_states_a_limit(
    limits: dict[str, object], longer: float | None
) -> None:
    """A limit that the flow does not state is not its own."""
    records: list[dict[str, Any]] = [
        {"parameters": {"params": {}}},
        {"seq": 1, "intent": {"role": {"name": "writer"}}},
        {"seq": 1, "error": {"kind": "timeout", "message": "no answer"}},
    ]
    definition = {"kind": "workflow", "name": "letters", "policy": {"role": limits}}
    fixes = found(read_case(definition, records))
    policies = [one.recipe["policy"] for one in fixes.candidates]
    assert policies == ([] if longer is None else [{"role": {"timeout_s": longer}}])
    assert bool(fixes.looked) is (longer is None)
