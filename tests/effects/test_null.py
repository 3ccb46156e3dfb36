"""The effect that touches nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from testbed.roles import THREAD, EffectHarness, role_bundle
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_effects.null import NullHandler
from uncaged_engine.door.outcomes import Answer, Failure, Void, Wait


@pytest.fixture
def harness(store: Store) -> EffectHarness:
    return EffectHarness(
        store=store, bundle=role_bundle(policy={"null": {}}), start={}, environment={}
    )


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"value": {"a": [1]}}, Answer(fields={"outcome": {"a": [1]}})),
        ({}, Answer(fields={"outcome": None})),
        ({"value": "ab", "times": 3}, Answer(fields={"outcome": "ababab"})),
        ({"value": 1, "fail": "no"}, Failure.of("null", "no")),
        ({"value": 1, "wait": True}, Wait(details={"null": 1})),
        ({"value": 1, "sleep_s": 0.001}, Answer(fields={"outcome": 1})),
    ],
)
def test_it_comes_to_what_its_body_says(
    harness: EffectHarness, body: dict[str, Any], outcome: object
) -> None:
    """An answer, a failure or a wait."""
    assert NullHandler().perform(body, harness.context(1)) == outcome


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "must be a mapping"),
        ({"valeu": 1}, "unknown key 'valeu'"),
        ({"sleep_s": -1}, "null.sleep_s: must be a number of at least 0, not -1"),
        ({"sleep_s": True}, "null.sleep_s: must be a number, not True"),
        ({"rule": "maybe"}, "null.rule: 'maybe' is not one of repeat, restore, ask"),
        ({"rule": ["repeat"]}, "null.rule: ['repeat'] is not one of"),
        ({"fail": 3}, "null.fail: must be text"),
        ({"times": -1}, "null.times: must be a whole number from 0"),
    ],
)
def test_a_bad_body_is_a_failure(harness: EffectHarness, body: object, words: str) -> None:
    """The bundle's author reads it; the engine goes on."""
    outcome = NullHandler().perform(body, harness.context(1))
    assert isinstance(outcome, Failure)
    assert outcome.error["kind"] == "effect"
    assert words in str(outcome.error["message"])


def test_a_kill_ends_its_sleep(harness: EffectHarness) -> None:
    """A kill ends the sleep at once, and the bundle sees nothing of it."""
    harness.cancel.request()
    assert isinstance(NullHandler().perform({"sleep_s": 3600}, harness.context(1)), Void)


def test_a_lack_is_mended_by_the_second_attempt(harness: EffectHarness) -> None:
    """A test can resume a thread that the first attempt paused."""
    body = {"lack": "no key", "value": 1}
    with pytest.raises(EnvironmentLacks, match="no key"):
        NullHandler().perform(body, harness.context(1))
    assert NullHandler().perform(body, harness.context(1, attempt=2)) == Answer(
        fields={"outcome": 1}
    )


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "repeat"),
        (None, "repeat"),
        ({"rule": "ask"}, "ask"),
        ({"rule": "restore"}, "restore"),
        ({"rule": []}, "repeat"),
    ],
)
def test_the_rule_is_the_bodys(harness: EffectHarness, body: object, rule: str) -> None:
    """A body can choose each of the three rules."""
    assert NullHandler().rule(body, harness.bundle) == rule


def test_a_mark_tells_what_was_performed_and_how_often(
    harness: EffectHarness, tmp_path: Path
) -> None:
    """Each performance leaves one line, the effect's key, in a file of the thread's own."""
    handler, body = NullHandler(), {"mark": True, "value": 1}
    handler.perform(body, harness.context(3))
    handler.perform(body, harness.context(3, attempt=2))
    marks = tmp_path / "store" / "work" / f"{THREAD}.null"
    assert marks.read_text("utf-8").splitlines() == [f"{THREAD}/3"] * 2
