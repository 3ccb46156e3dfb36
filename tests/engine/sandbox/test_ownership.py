"""The owners of a script's writable directories: changed for one run, and restored."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.scripting import objects_at
from uncaged_engine.sandbox import ownership
from uncaged_engine.sandbox.granted_paths import Refused
from uncaged_engine.sandbox.ownership import change_owners, temporary_owner
from uncaged_engine.sandbox.scratch import scratch_user

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")


@as_root
def test_a_second_run_waits_for_what_is_lent(tmp_path: Path) -> None:
    """A second run begins when the first has given the ownership back, and keeps it until its own
    end.
    """
    place, home = tmp_path / "shared", tmp_path / "home"
    place.mkdir()
    user = scratch_user(home)
    begun, finish = threading.Event(), threading.Event()
    owners: list[int] = []

    def second() -> None:
        with temporary_owner(objects_at(place), user, tmp_path / "store" / "lent"):
            begun.set()
            finish.wait(60)
            owners.append(place.stat().st_uid)

    other = threading.Thread(target=second)
    with temporary_owner(objects_at(place), user, tmp_path / "store" / "lent"):
        other.start()
        early = begun.wait(0.1)
    assert begun.wait(60)
    finish.set()
    other.join()
    assert not early
    assert owners == [user.uid]
    assert place.stat().st_uid == 0


LENDING = """
import os, sys, threading
from pathlib import Path
from testbed.scripting import objects_at
from uncaged_engine.sandbox import ownership
from uncaged_engine.sandbox.scratch import ScratchUser

place, lent, half = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "half"
change = ownership.change_owners

def change_half(fd, choose, apart=()):
    if half and choose.__name__ == "owner_of":  # the top alone is restored
        os.fchown(fd, 0, 0)
        print("changed", flush=True)
        threading.Event().wait()
    change(fd, choose, apart)

ownership.change_owners = change_half
with ownership.temporary_owner(objects_at(place), ScratchUser(uid=64001, gid=64001), lent):
    if not half:
        print("changed", flush=True)
        threading.Event().wait()
"""


def kill_while_lent(place: Path, lent: Path, *, half: bool) -> None:
    """Kill a process of another store while it has changed the owner of a directory."""
    words = [sys.executable, "-c", LENDING, str(place), str(lent), "half" if half else "whole"]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None and process.stdout.readline() == b"changed\n"
        process.kill()


@as_root
@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("wanted", ["shared", "shared/a", "."])
def test_a_killed_process_of_another_store_leaves_no_foreign_files(
    place: Path, wanted: str, half: bool
) -> None:
    """A run finds its record for the same directory, for one around it and for one in it; at the
    end all is root's again.
    """
    kill_while_lent(place / "shared", place / "secret" / "lent", half=half)
    chosen = (place / wanted).resolve()
    user = scratch_user(place / "home")
    with temporary_owner(objects_at(chosen), user, place.parent / "store" / "lent"):
        owners = {path.stat().st_uid for path in (chosen, *chosen.rglob("file"))}
    assert owners == {user.uid}
    assert {path.stat().st_uid for path in (place, *place.rglob("*"))} == {0}
    assert not list((place / "secret" / "lent").iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two directories of root's with a file each, and beside them a file that no policy names."""
    for name in ("shared/a/file", "shared/b/file", "secret/file"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("root's")
        path.chmod(0o600)
    return tmp_path


def change_while(place: Path, act: Callable[[], None]) -> None:
    """Give *place* to user 64001; act once, right after the walk looked at one of its directories,
    before it goes into it.
    """
    acted: list[bool] = []

    def choose(found: os.stat_result) -> tuple[int, int]:
        if stat.S_ISDIR(found.st_mode) and found.st_ino != place.stat().st_ino and not acted:
            acted.append(True)
            act()
        return 64001, 64001

    fd = os.open(place, os.O_RDONLY)
    try:
        change_owners(fd, choose)
    finally:
        os.close(fd)
    assert acted


@as_root
def test_a_swapped_directory_leads_lending_nowhere(place: Path) -> None:
    """A directory that becomes a link while owners change takes no file outside along; what was
    there keeps changing owner.
    """

    def swap() -> None:
        for name in ("a", "b"):
            (place / "shared" / name).rename(place / f"moved-{name}")
            (place / "shared" / name).symlink_to(place / "secret")

    change_while(place / "shared", swap)
    assert (place / "secret").stat().st_uid == (place / "secret" / "file").stat().st_uid == 0
    # the walk was under way
    assert 64001 in {(place / f"moved-{name}" / "file").stat().st_uid for name in "ab"}


@as_root
def test_a_name_that_vanishes_is_no_error(place: Path) -> None:
    """Files that are removed while owners change are passed over; the rest changes hands."""

    def remove() -> None:
        for name in ("a", "b"):
            (place / "shared" / name / "file").unlink()

    (place / "shared" / "c").mkdir()
    change_while(place / "shared", remove)
    assert {path.stat().st_uid for path in place.glob("shared/*")} == {64001}


@as_root
def test_what_was_lent_is_given_back(place: Path) -> None:
    """Groups, second names that a script made and files that it moved go back; set-id files and
    second names from before are never lent.
    """
    shared, user = place / "shared", scratch_user(place)
    (shared / "set-id").write_text("x")
    (shared / "set-id").chmod(0o4755)
    os.link(place / "secret" / "file", shared / "linked")
    os.chown(shared / "a" / "file", 0, 7)
    os.chown(shared / "b", 1000, 1000)
    with temporary_owner(objects_at(shared), user, place / "store" / "lent"):
        assert (shared / "a" / "file").stat().st_uid == user.uid
        assert {(shared / name).stat().st_uid for name in ("set-id", "linked")} == {0}
        assert (shared / "b").stat().st_uid == 1000
        os.link(shared / "a" / "file", shared / "second")
        (shared / "new").write_text("made by the script")
        os.chown(shared / "new", user.uid, user.gid)
    assert {
        path.stat().st_uid for path in (shared, *shared.rglob("*")) if "b" not in path.parts
    } == {0}
    assert (shared / "a" / "file").stat().st_gid == 7
    assert (shared / "set-id").stat().st_mode & stat.S_ISUID
    assert list((place / "store" / "lent").iterdir()) == []


@as_root
def test_the_store_is_never_lent(place: Path) -> None:
    """In a directory that holds the engine's store, the store keeps its owner."""
    records = place / "shared" / "a" / "lent"
    with temporary_owner(objects_at(place / "shared"), scratch_user(place), records):
        assert (place / "shared" / "b" / "file").stat().st_uid != 0
        assert {path.stat().st_uid for path in (records.parent, *records.parent.rglob("*"))} == {0}


@as_root
def test_too_much_is_not_lent_in_part(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with too many files is refused before one of them changes hands."""
    monkeypatch.setattr(ownership, "MOST_ENTRIES", 3)
    with (
        pytest.raises(Refused, match="holds more than 3 files"),
        temporary_owner(objects_at(place / "shared"), scratch_user(place), place / "lent"),
    ):
        pass
    assert {path.stat().st_uid for path in place.rglob("*")} == {0}


@as_root
def test_a_directory_in_a_lent_one_waits(place: Path) -> None:
    """A run that needs a directory inside another run's begins after that run."""
    begun = threading.Event()
    user = scratch_user(place)

    def inner() -> None:
        with temporary_owner(objects_at(place / "shared" / "a"), user, place / "store" / "lent"):
            begun.set()

    other = threading.Thread(target=inner)
    with temporary_owner(objects_at(place / "shared"), user, place / "store" / "lent"):
        other.start()
        early = begun.wait(0.1)
    assert begun.wait(60)
    other.join()
    assert not early
    assert {path.stat().st_uid for path in place.rglob("*")} == {0}
