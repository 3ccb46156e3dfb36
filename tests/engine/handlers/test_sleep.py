"""The effect that waits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from testbed.roles import Desk, clock, role_bundle
from uncaged_bundles.storage.store import Store
from uncaged_engine.handlers.sleep import SleepHandler
from uncaged_engine.outcomes import Void


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store=store, bundle=role_bundle(policy={"sleep": {}}), start={}, environment={})


def test_a_sleep_says_until_when(desk: Desk) -> None:
    """Whoever follows it reads a moment, which stays true while nothing more is said."""
    context = replace(desk.context(1), intended_ms=clock())
    desk.cancel.request()
    assert SleepHandler().perform({"seconds": 90}, context) == Void(word="killed", message="killed while it slept")
    [said] = desk.progress
    assert re.fullmatch(r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(said["text"]))
