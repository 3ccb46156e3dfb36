"""Which Python runs the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_repair.project.interpreter import choose_interpreter


def environment_in(place: Path, program: str = sys.executable) -> Path:
    """Make what looks like a virtual environment."""
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {Path(program).parent}\n")
    python = place / "bin/python"
    python.symlink_to(program)
    return python


def test_the_repositorys_own_environment_comes_first(tmp_path: Path) -> None:
    """Beside the code, then at the top, then the active one, then ours; each says why it was
    taken.
    """
    top, inside = tmp_path / "top", tmp_path / "top/inside"
    inside.mkdir(parents=True)
    active = environment_in(tmp_path / "active")
    environment = {"VIRTUAL_ENV": str(tmp_path / "active")}
    ours = choose_interpreter(inside, top, {}, None)
    assert (ours.executable, ours.reason) == (Path(sys.executable), "ours")
    assert choose_interpreter(inside, top, environment, None).executable == active
    at_top = environment_in(top / ".venv")
    assert choose_interpreter(inside, top, environment, None).executable == at_top
    beside = environment_in(inside / ".venv")
    chosen = choose_interpreter(inside, top, environment, None)
    assert (chosen.executable, chosen.reason) == (beside, "the repository's .venv")
    assert chosen.version == sys.version_info[:3]


def test_the_one_that_the_command_names_comes_before_all(tmp_path: Path) -> None:
    environment_in(tmp_path / ".venv")
    named = environment_in(tmp_path / "other")
    assert choose_interpreter(tmp_path, tmp_path, {}, named).executable == named


def test_an_environment_that_does_not_start_is_passed_over(tmp_path: Path) -> None:
    environment_in(tmp_path / ".venv", "/bin/false")
    assert choose_interpreter(tmp_path, tmp_path, {}, None).executable == Path(sys.executable)


def test_a_named_interpreter_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="is not there"):
        choose_interpreter(tmp_path, tmp_path, {}, tmp_path / "no/bin/python")


def test_a_version_that_is_too_old_is_an_error(tmp_path: Path) -> None:
    """The repository's own environment decides: no other one takes its place."""
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho '[3, 6, 1]'\n")
    old.chmod(0o755)
    environment_in(tmp_path / ".venv", str(old))
    with pytest.raises(EnvironmentLacks, match=r"Python 3\.6\.1 is older than 3\.8"):
        choose_interpreter(tmp_path, tmp_path, {}, None)
