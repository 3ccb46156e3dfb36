"""A Python environment in a worktree."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from testbed.repositories import write
from uncaged_agents.workspace.links import make_links


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project that is installed into its own environment in editable mode, as installers do it:
    by path.
    """
    root = tmp_path / "app"
    write(root, {"src/mine.py": "WHERE = 'checkout'\n"})
    venv.create(root / ".venv", with_pip=False)
    site = next((root / ".venv").glob("lib/python*/site-packages"))
    write(
        site,
        {
            "mine.pth": f"{root}/src\n{root}2/src\n",
            "plain.pth": "# nothing\n",
            "__editable___finder.py": f"P = '{root}/src'\n",
        },
    )
    write(root, {".venv/bin/tool": f"#!{root}/.venv/bin/python\nimport mine; print(mine.WHERE)\n"})
    (root / ".venv" / "bin" / "tool").chmod(0o755)
    return root


def mirror_of(repository: Path, tree: Path) -> Path:
    write(tree, {"src/mine.py": "WHERE = 'worktree'\n"})
    make_links([".venv"], repository, tree)
    return tree / ".venv"


@pytest.mark.slow
def test_an_editable_install_imports_the_worktrees_code(repository: Path, tmp_path: Path) -> None:
    """Through the interpreter and through a script; in the checkout both still import the
    checkout's.
    """
    mirror = mirror_of(repository, tmp_path / "tree")

    def said(*argv: str) -> str:
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, timeout=60
        ).stdout.strip()

    assert (
        said(
            str(mirror / "bin" / "python"), "-c", "import mine, sys; print(mine.WHERE, sys.prefix)"
        )
        == f"worktree {mirror}"
    )
    assert said(str(mirror / "bin" / "tool")) == "worktree"
    assert said(str(repository / ".venv" / "bin" / "tool")) == "checkout"


def test_only_files_that_name_the_checkout_are_written_anew(
    repository: Path, tmp_path: Path
) -> None:
    """Everything else is a link; a path that merely begins alike is another directory."""
    mirror = mirror_of(repository, tmp_path / "tree")
    site = next(mirror.glob("lib/python*/site-packages"))
    assert not site.is_symlink()
    assert (site / "mine.pth").read_text("utf-8") == f"{tmp_path}/tree/src\n{repository}2/src\n"
    assert (site / "__editable___finder.py").read_text("utf-8") == f"P = '{tmp_path}/tree/src'\n"
    assert (site / "plain.pth").is_symlink()
    assert (mirror / "bin" / "tool").stat().st_mode & 0o777 == 0o755
    assert (mirror / "bin" / "python").is_symlink()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert (mirror / "lib" / version).is_dir()
