"""Recorded outcomes of effects inside called flows, for a trial."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from uncaged_capture.recorded import recorded_outcome
from uncaged_engine.services.trials import TrialEffect

SENT = {"method": "POST", "url": "http://shop.test/", "json": {"n": 1}}


def effect(body: Mapping[str, object], *, seq: int = 1, part: int | None = None) -> TrialEffect:
    return TrialEffect(
        step=1, flows=("shop",), seq=seq, part=part, kind="http", body=body, harmless=False
    )


@pytest.mark.parametrize(
    ("asked", "is_known"),
    [
        (effect(SENT), True),
        (effect({**SENT, "json": {"n": 2}}), False),
        (effect(SENT, seq=2), False),
        (effect(SENT, part=0), False),
    ],
    ids=["the same", "another body", "another step", "a part"],
)
def test_only_the_same_effect_has_a_recorded_outcome(asked: TrialEffect, *, is_known: bool) -> None:
    """Another request was not answered, so its answer is not known."""
    thread: Any = SimpleNamespace(
        records=[
            {"seq": 1, "intent": {"http": {**SENT, "label": "order"}}},
            {"seq": 1, "outcome": {"status": 201}},
        ]
    )
    assert (recorded_outcome(thread, asked) is not None) == is_known
