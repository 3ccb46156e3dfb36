"""Comparison of two versions."""

from __future__ import annotations

import pytest
from uncaged_bundles.policy import Policy, widening
from uncaged_engine.flows.differences import reversed_sentence


def policy(**limits: object) -> Policy:
    return Policy(trusted=False, limits={"http": limits})


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (policy(hosts=["a", "b", "c"]), policy(hosts=["c", "d"]), "http: hosts no longer a, b"),
        (policy(timeout_s=60), policy(timeout_s=20), "http: timeout_s was 60, is now 20"),
        (policy(), policy(timeout_s=20), "http: timeout_s was not set, is now 20"),
        (policy(private=True), policy(), "http: private was yes, is left to the default now"),
    ],
)
def test_what_a_version_may_no_longer_do_is_said_from_before_to_after(
    before: Policy, after: Policy, lost: str
) -> None:
    """Never as if the old version came after the new one."""
    assert lost in [reversed_sentence(sentence) for sentence in widening(after, before)]


def test_an_effect_that_is_gone_is_named_as_it_was() -> None:
    """A sentence without a direction stays as it is."""
    assert reversed_sentence("sleep: may wait") == "sleep: may wait"
