"""The effect that waits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from testbed.roles import EffectHarness, clock, role_bundle
from uncaged_bundles.storage.store import Store
from uncaged_effects.sleep import SleepHandler
from uncaged_engine.door.outcomes import Answer, Void


@pytest.fixture
def harness(store: Store) -> EffectHarness:
    return EffectHarness(
        store=store, bundle=role_bundle(policy={"sleep": {}}), start={}, environment={}
    )


def test_a_sleep_says_until_when(harness: EffectHarness) -> None:
    """Followers see the time at which it ends, which stays true until the next report."""
    context = replace(harness.context(1), intended_ms=clock())
    harness.cancel.request()
    assert SleepHandler().perform({"seconds": 90}, context) == Void(
        word="killed", message="killed while it slept"
    )
    [said] = harness.progress
    assert re.fullmatch(r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(said["text"]))


class Clocks:
    """A wall clock and a steady one. Each look at the steady one lets ten seconds pass, and sets
    the wall clock back by an hour.
    """

    def __init__(self) -> None:
        self.steady_s = 1000.0
        self.wall_ms = clock()

    def steady(self) -> float:
        self.steady_s += 10
        self.wall_ms -= 3_600_000
        return self.steady_s

    def wall(self) -> int:
        return self.wall_ms


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_sleep_of_seconds_ends_whatever_the_clock_does(
    harness: EffectHarness, attempt: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sleep lasts for its seconds by the steady clock, also in a further attempt whose intent
    is in the clock's future.
    """
    clocks = Clocks()
    waits: list[float | None] = []
    monkeypatch.setattr(harness.cancel, "wait", waits.append)
    context = harness.context(1, attempt=attempt, intended_ms=clock() + 10**9, clock_ms=clocks.wall)
    assert SleepHandler(clocks.steady).perform({"seconds": 90}, context) == Answer(
        fields={"outcome": clock() + 10**9 + 90_000}
    )
    assert waits == [60.0, 60.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]


def test_a_further_attempt_sleeps_for_what_is_left(
    harness: EffectHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time since the intent counts, also while no worker ran."""
    waits: list[float | None] = []
    monkeypatch.setattr(harness.cancel, "wait", waits.append)
    context = replace(harness.context(1), attempt=2, intended_ms=clock() - 85_000)
    assert isinstance(SleepHandler(Clocks().steady).perform({"seconds": 90}, context), Answer)
    assert waits == []
