"""No more agents work at once than there are places, over all processes of a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_engine.agents.turns import Cancelled, turn
from uncaged_engine.effects import Cancel


def test_the_one_who_finds_no_place_says_so_and_can_be_killed(tmp_path: Path) -> None:
    """Waiting is told, and ends at once with a kill."""
    told: list[object] = []
    cancel = Cancel()

    def tell(fields: object) -> None:
        told.append(fields)
        cancel.request()

    with turn(tmp_path, 1, Cancel(), told.append), pytest.raises(Cancelled), turn(tmp_path, 1, cancel, tell):
        raise AssertionError("there was no place")
    assert told == [{"text": "queued: 1 agents work already", "queued": True}]


def test_a_place_is_given_back(tmp_path: Path) -> None:
    """Also when the work in it failed."""
    with pytest.raises(ValueError, match="work"), turn(tmp_path, 1, Cancel(), print):
        raise ValueError("work")
    with turn(tmp_path, 2, Cancel(), print), turn(tmp_path, 2, Cancel(), print):
        pass
