"""What is lent to the user of one script is no other script's at the same time."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from uncaged_engine.sandbox.scratch import scratch_user
from uncaged_engine.scripting.lending import lent


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lends anything to a user for scripts")
def test_a_second_run_waits_for_what_is_lent(tmp_path: Path) -> None:
    """It begins once the first has given back, and what it was lent is not taken from it before its end."""
    place, home = tmp_path / "shared", tmp_path / "home"
    place.mkdir()
    user = scratch_user(home)
    begun, finish = threading.Event(), threading.Event()
    owners: list[int] = []

    def second() -> None:
        with lent([place], user):
            begun.set()
            finish.wait(10)
            owners.append(place.stat().st_uid)

    other = threading.Thread(target=second)
    with lent([place], user):
        other.start()
        early = begun.wait(0.1)
    assert begun.wait(10)
    finish.set()
    other.join()
    assert not early
    assert owners == [user.uid]
    assert place.stat().st_uid == 0
