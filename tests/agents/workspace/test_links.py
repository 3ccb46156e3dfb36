"""Dependencies of the person's checkout, seen from a worktree."""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed.repositories import contents, write
from uncaged_agents.workspace.links import make_links, translated


def test_a_directory_becomes_a_directory_of_links(tmp_path: Path) -> None:
    """``node_modules/`` in a .gitignore matches directories only, so the mirror is one; its
    children are links.
    """
    repository, tree = tmp_path / "r", tmp_path / "t"
    write(repository, {"node_modules/m/i.js": "1", "node_modules/.gitignore": "*\n"})
    tree.mkdir()
    make_links(["node_modules"], repository, tree)
    mirror = tree / "node_modules"
    assert mirror.is_dir()
    assert not mirror.is_symlink()
    assert (mirror / "m" / "i.js").read_text("utf-8") == "1"
    assert (mirror / "m").is_symlink()
    assert not (mirror / ".gitignore").is_symlink(), "git reads no .gitignore through a link"


def test_what_an_agent_installs_or_removes_stays_in_the_worktree(tmp_path: Path) -> None:
    """The person's own dependencies do not change under their hands."""
    repository, tree = tmp_path / "r", tmp_path / "t"
    write(repository, {"node_modules/m/i.js": "1"})
    tree.mkdir()
    make_links(["node_modules"], repository, tree)
    before = contents(repository)
    write(tree, {"node_modules/new/i.js": "2"})
    shutil.rmtree(tree / "node_modules")
    assert contents(repository) == before


def test_linking_again_changes_nothing_and_finishes_what_a_crash_left(tmp_path: Path) -> None:
    """Complete links stay, a half-made directory is removed, and paths that are gone from the
    repository are skipped.
    """
    repository, tree = tmp_path / "r", tmp_path / "t"
    write(repository, {"node_modules/m": "1", ".env": "e"})
    write(tree, {"node_modules.uncaged-half/old": ""})
    make_links(["node_modules", ".env", "gone"], repository, tree)
    once = contents(tree)
    make_links(["node_modules", ".env", "gone"], repository, tree)
    assert contents(tree) == once
    assert set(once) == {"node_modules/m", ".env"}


def test_paths_of_an_activated_environment_lead_into_the_worktree(tmp_path: Path) -> None:
    """An activated ``.venv`` is first on PATH; left as it is, it would test the person's
    checkout.
    """
    repository, tree = tmp_path / "r", tmp_path / "t"
    environment = {
        "PATH": f"{repository}/.venv/bin:/usr/bin:{repository}/tools",
        "VIRTUAL_ENV": f"{repository}/.venv",
        "HOME": "/h",
    }
    assert translated(environment, [".venv"], repository, tree) == {
        "PATH": f"{tree}/.venv/bin:/usr/bin:{repository}/tools",
        "VIRTUAL_ENV": f"{tree}/.venv",
        "HOME": "/h",
    }
    assert translated({}, [".venv"], repository, tree) == {}
