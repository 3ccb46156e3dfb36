"""No more agents work at once than there are places, over all processes of a user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from uncaged_agents.slots import AgentSlot, SlotCancelled, held_slots, slots_directory
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import AgentPermits, Cancel

HOLD = """
import sys
from pathlib import Path
from uncaged_agents.slots import AgentSlot
from uncaged_engine.door.effects import AgentPermits, Cancel
with AgentSlot(Path(sys.argv[1]), 1, Cancel(), print):
    print("here", flush=True)
    sys.stdin.read()
"""


def turn(directory: Path, places: int) -> AgentSlot:
    return AgentSlot(directory, places, Cancel(), _unexpected_report)


def _unexpected_report(fields: Mapping[str, object]) -> None:
    raise AssertionError(f"no agent had to wait: {fields}")


def _ignore(fields: Mapping[str, object]) -> None:
    """Drop progress: there are no followers."""


def test_the_one_who_finds_no_place_says_so_and_can_be_killed(tmp_path: Path) -> None:
    """A wait and its end are reported; a kill ends it at once."""
    told: list[Mapping[str, object]] = []
    cancel = Cancel()

    def tell(fields: Mapping[str, object]) -> None:
        told.append(fields)
        cancel.request()

    with turn(tmp_path, 1), pytest.raises(SlotCancelled), AgentSlot(tmp_path, 1, cancel, tell):
        raise AssertionError("there was no place")
    assert told == [
        {"text": "queued: 1 agent works on this machine already", "queued": True},
        {"queued": False},
    ]


def test_a_place_is_given_back(tmp_path: Path) -> None:
    """A slot is released even if the work in it fails."""
    with pytest.raises(ValueError, match="work"), turn(tmp_path, 1):
        raise ValueError("work")
    with turn(tmp_path, 2), turn(tmp_path, 2):
        assert held_slots(tmp_path) == 2
    assert held_slots(tmp_path) == 0


def test_a_smaller_limit_counts_those_that_a_larger_one_let_in(tmp_path: Path) -> None:
    """Two stores, two configs: a process with a limit of two does not start a third agent, even if
    a low place is free.
    """
    cancel = Cancel()
    cancel.request()
    first = turn(tmp_path, 4)
    with first, turn(tmp_path, 4), turn(tmp_path, 4):
        with first.released():
            assert held_slots(tmp_path) == 2  # the lowest place is free now
            with pytest.raises(SlotCancelled), AgentSlot(tmp_path, 2, cancel, _ignore):
                raise AssertionError("it would be the third")
        with turn(tmp_path, 4):
            assert held_slots(tmp_path) == 4


def test_a_lent_place_is_another_s_meanwhile(tmp_path: Path) -> None:
    """An agent that waits for others does not keep them from working, and goes on when there is a
    slot again.
    """
    mine = turn(tmp_path, 1)
    with mine:
        with mine.released(), turn(tmp_path, 1):
            assert held_slots(tmp_path) == 1
        assert held_slots(tmp_path) == 1


@pytest.mark.slow
def test_a_process_that_dies_gives_its_place_back(tmp_path: Path) -> None:
    """Other processes count, however they end; a waiting agent goes on."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"here\n"
        with AgentSlot(
            tmp_path,
            1,
            Cancel(),
            lambda fields: os.kill(other.pid, signal.SIGKILL) if fields.get("queued") else None,
        ):
            assert held_slots(tmp_path) == 1


def test_a_directory_that_is_not_ours_or_gone_pauses_the_thread(tmp_path: Path) -> None:
    """A person fixes it and resumes: another's directory in the way, a login that ended."""
    (tmp_path / "uncaged").mkdir(mode=0o755)
    with pytest.raises(EnvironmentLacks, match="is not a directory of yours alone"):
        slots_directory({"XDG_RUNTIME_DIR": str(tmp_path)})
    told: list[Mapping[str, object]] = []
    directory = tmp_path / "places"
    directory.mkdir()

    def log_out(fields: Mapping[str, object]) -> None:
        told.append(fields)
        if fields.get("queued"):
            (directory / "0.place").unlink()
            directory.rmdir()

    with (
        turn(directory, 1),
        pytest.raises(EnvironmentLacks, match="is gone; log in again, then resume"),
        AgentSlot(directory, 1, Cancel(), log_out),
    ):
        raise AssertionError("there was no place")
    assert told[-1] == {"queued": False}


def test_the_places_are_the_user_s_own(tmp_path: Path) -> None:
    """The directory is the same for all stores of a user, and closed to other users."""
    found = slots_directory({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert found == tmp_path / "uncaged" / "agents"
    assert found.stat().st_mode & 0o777 == 0o700


class Permits(AgentPermits):
    """Permits of a store, of which the first attempts find none."""

    def __init__(self, refused: int) -> None:
        self.refused = refused
        self.held = 0

    def try_take(self) -> bool:
        self.refused -= 1
        self.held += self.refused < 0
        return self.refused < 0

    def release(self) -> None:
        self.held -= 1


def test_a_slot_waits_for_a_permit_of_the_store(tmp_path: Path) -> None:
    """Without one the slot of the machine is free for others; both are released at the end."""
    permits, free = Permits(refused=2), []

    def note(_fields: Mapping[str, object]) -> None:
        free.append(held_slots(tmp_path) == 0)

    with AgentSlot(tmp_path, 1, Cancel(), note, permits) as slot:
        assert (permits.held, held_slots(tmp_path)) == (1, 1)
        with slot.released():
            assert (permits.held, held_slots(tmp_path)) == (0, 0)
        assert permits.held == 1
    assert (permits.held, held_slots(tmp_path)) == (0, 0)
    assert free[0] and free[1]
