"""Single checks of `doctor`, with values of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_cli.machine_checks import check_git, check_python


@pytest.mark.parametrize(
    ("version", "level"), [((3, 10), "problem"), ((3, 11), "ok"), ((4, 0), "ok")]
)
def test_python_must_be_new_enough(version: tuple[int, int], level: str) -> None:
    """3.11 is the oldest."""
    check = check_python(version)
    assert check.level == level
    assert bool(check.remedy) == (level == "problem")


def test_git_must_be_there_and_new_enough(tmp_path: Path) -> None:
    """A missing, broken or old git is a problem with a remedy."""
    assert check_git().level == "ok"
    assert check_git(str(tmp_path / "none")).level == "problem"
    for text, level in (
        ("git version 2.39.5", "ok"),
        ("git version 2.20.1", "problem"),
        ("hello", "problem"),
    ):
        program = tmp_path / "git"
        program.write_text(f"#!/bin/sh\necho {text}\n")
        program.chmod(0o755)
        assert check_git(str(program)).level == level
