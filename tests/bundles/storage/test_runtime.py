"""The runtime directory of one user's processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.storage.runtime import VARIABLE, runtime_directory

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's directory")


def test_everybody_finds_the_same_private_directory(tmp_path: Path) -> None:
    """The directory is created once, for its owner alone."""
    found = runtime_directory({VARIABLE: str(tmp_path)})
    assert (found, found.stat().st_mode & 0o777) == (tmp_path / "uncaged", 0o700)
    assert runtime_directory({VARIABLE: str(tmp_path)}) == found


@pytest.mark.parametrize("named", ["", "relative/path", "/does/not/exist"])
def test_a_variable_that_leads_nowhere_is_passed_over(tmp_path: Path, named: str) -> None:
    """As in a timer's job, which has none: the user's own directory is what is left."""
    mine = tmp_path / "mine"
    assert runtime_directory({VARIABLE: named}, max_bytes=0, own=mine) == mine
    found = runtime_directory({VARIABLE: named}, own=mine)
    assert found in (mine, Path(f"/run/user/{os.getuid()}/uncaged"))


def test_a_base_that_is_too_long_for_a_socket_is_passed_over(tmp_path: Path) -> None:
    """The bound is that of the whole path."""
    named = {VARIABLE: str(tmp_path)}
    length = len(os.fsencode(tmp_path / "uncaged"))
    assert runtime_directory(named, max_bytes=length) == tmp_path / "uncaged"
    assert (
        runtime_directory(named, max_bytes=length - 1, own=tmp_path / "mine")
        != tmp_path / "uncaged"
    )


def test_a_base_that_others_may_write_to_is_passed_over(tmp_path: Path) -> None:
    """Other users with write access could put another directory in the place of ours."""
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(0o777)
    assert runtime_directory({VARIABLE: str(base)}, own=tmp_path / "mine").parent != base


@as_root
def test_a_base_of_another_user_is_passed_over(tmp_path: Path) -> None:
    """`su` may keep the variable of the user that one was."""
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    os.chown(base, NOBODY, NOBODY)
    assert runtime_directory({VARIABLE: str(base)}, own=tmp_path / "mine").parent != base


def test_a_directory_that_others_can_look_into_is_refused(tmp_path: Path) -> None:
    """So is a link, and a file; the message says what to do."""
    place = tmp_path / "uncaged"
    place.mkdir(mode=0o700)
    for spoil in (_open_up, _make_link, _make_file):
        spoil(place)
        with pytest.raises(
            RefusedError,
            match=f"{place} is not a directory of yours alone; remove it, or set XDG_RUNTIME_DIR",
        ):
            runtime_directory({VARIABLE: str(tmp_path)})


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """A directory that another user made first, in a place open to all, is not used."""
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    os.chown(own, NOBODY, NOBODY)
    with pytest.raises(RefusedError, match="not a directory of yours alone"):
        runtime_directory({}, max_bytes=0, own=own)


def _open_up(place: Path) -> None:
    place.chmod(0o755)


def _make_link(place: Path) -> None:
    place.rmdir()
    place.symlink_to(place.parent)


def _make_file(place: Path) -> None:
    place.unlink()
    place.write_text("")
