"""Values of the further run of a proof, and what the run means for the proof."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_capture.other_values import (
    OtherRun,
    OtherState,
    other_values,
    proof_with,
    shown_values,
)
from uncaged_capture.proving import ProofState, TrialProof

RECORDED = {"path": "app.log", "count": 3, "token": "secret:SHOP"}
KEPT = "the-kept-value-of-a-secret"


def test_the_values_that_differ_are_those_of_the_example() -> None:
    """Any text is a value, with the syntax of a shell and lines as well."""
    evil = "$(touch evil)\n`x`; ../../etc"
    assert other_values(RECORDED, {"path": evil, "count": 3}, {}) == {"path": evil}
    assert shown_values({"path": evil, "count": 4}) == "path=$(touch evil) `x`; ../../etc, count=4"


@pytest.mark.parametrize(
    ("example", "why"),
    [
        ({"path": "app.log", "count": 3}, "has the recorded values"),
        ({"paht": "web.log"}, "no parameter 'paht'; the parameters are: count, path, token"),
        ({"token": "another"}, "is a secret, which an example cannot change"),
        ({"path": "password=hunter2-7"}, "looks like a secret"),
        ({"path": f"x{KEPT}y"}, "looks like a secret"),
    ],
)
def test_an_example_without_other_values_or_with_a_secret_is_refused(
    example: dict[str, object], why: str
) -> None:
    """The message says why, and has no value of a secret."""
    with pytest.raises(UsageError, match=why) as refused:
        other_values(RECORDED, example, {KEPT: "SHOP"})
    assert "hunter2" not in str(refused.value)
    assert KEPT not in str(refused.value)


@pytest.mark.parametrize(
    ("before", "state", "after"),
    [
        ("proved", "succeeded", ("proved", None)),
        ("proved", "held", ("proved", None)),
        ("proved", "failed", ("unproved", 4)),
        ("unproved", "failed", ("unproved", 2)),
    ],
)
def test_a_failed_run_leaves_a_flow_unproved(
    before: ProofState, state: OtherState, after: tuple[ProofState, int | None]
) -> None:
    """The first step that was not proved counts, and each reason is in the remark."""
    proof = TrialProof(state=before, step=2 if before == "unproved" else None)
    other = OtherRun(values={"count": 60}, state=state, step=4, reason="too many")
    found = proof_with(proof, other)
    assert (found.state, found.step) == after
    assert ("with count=60 it failed at step 4: too many" in found.remark) is (state == "failed")
