"""The demo repository of `demo`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_templates.demo import BUGS, ISSUE, Bug, write_demo
from uncaged_templates.demo_files import FILES

RED = {
    "grace": {"tests/test_fines.py::test_a_fine_grows_with_the_days[2-0]"},
    "page": {
        "tests/test_catalogue.py::test_the_first_page_starts_at_the_beginning",
        "tests/test_catalogue.py::test_the_last_page_holds_what_is_left",
    },
    "renew": {
        "tests/test_loans.py::test_a_reserved_book_may_not_be_renewed",
        "tests/test_loans.py::test_nothing_is_renewed_three_times",
    },
}


def git(directory: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=directory, capture_output=True, text=True, check=True
    ).stdout


def red_tests(directory: Path) -> set[str]:
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return set(re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE))


def test_it_is_a_clean_repository_with_one_commit(tmp_path: Path) -> None:
    """The commit is on `main` and complete, with an author of its own, and without the person's
    hooks.
    """
    directory = tmp_path / "new" / "demo"
    write_demo(directory)
    assert git(directory, "status", "--porcelain") == ""
    assert git(directory, "log", "--format=%an <%ae> %s %D").strip() == (
        "Demo <demo@example.com> Loans, fines and a catalogue HEAD -> main"
    )
    assert set(git(directory, "ls-files").split()) == set(FILES)
    assert (directory / "ISSUE.md").read_text() == ISSUE
    assert not (directory / ".git" / "hooks").exists()


def test_it_is_the_same_commit_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a person's git settings nor the day change a byte."""
    write_demo(tmp_path / "one")
    (tmp_path / ".gitconfig").write_text(
        "[core]\nautocrlf = true\n[init]\ndefaultBranch = trunk\n[commit]\ngpgsign = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Other Person")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    write_demo(tmp_path / "two")
    monkeypatch.undo()
    assert git(tmp_path / "one", "rev-parse", "HEAD") == git(tmp_path / "two", "rev-parse", "HEAD")


@pytest.mark.slow
@pytest.mark.parametrize(
    "bugs",
    [BUGS, *((bug,) for bug in BUGS), ()],
    ids=lambda bugs: "-".join(bug.name for bug in bugs) or "none",
)
def test_each_bug_is_one_line_and_turns_its_own_tests_red(
    tmp_path: Path, bugs: tuple[Bug, ...]
) -> None:
    """A bug is one wrong line; its tests fail, and no others; without bugs all pass."""
    write_demo(tmp_path / "demo", bugs)
    wrong = sum(
        line != right
        for path, text in FILES.items()
        for line, right in zip(
            (tmp_path / "demo" / path).read_text().split("\n"), text.split("\n"), strict=True
        )
    )
    assert wrong == len(bugs)
    assert red_tests(tmp_path / "demo") == set().union(*(RED[bug.name] for bug in bugs))


def test_the_issue_names_every_bug() -> None:
    """The issue describes each bug in the words of a user of the program."""
    assert len(re.findall(r"^\d\. ", ISSUE, re.MULTILINE)) == len(BUGS)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A directory that holds anything is left alone, with a word on what to do; an empty one will
    do.
    """
    (tmp_path / "mine.txt").touch()
    for place in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(UsageError, match="exists and is not empty; name a new directory"):
            write_demo(place)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    write_demo(tmp_path / "empty")


def test_without_git_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="git is not installed"):
        write_demo(tmp_path / "demo")
    assert not (tmp_path / "demo").exists()
