"""The copy, put back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from uncaged_repair.server.cleanup import ScratchTree


@pytest.fixture
def tree(tmp_path: Path) -> ScratchTree:
    pristine, root, home = tmp_path / "pristine", tmp_path / "root", tmp_path / "home"
    (pristine / "pkg").mkdir(parents=True)
    (pristine / "pkg/a.py").write_text("a = 1\n")
    (pristine / "run.sh").write_text("true\n")
    (pristine / "run.sh").chmod(0o755)
    (pristine / "link").symlink_to("pkg/a.py")
    shutil.copytree(pristine, root, symlinks=True)
    home.mkdir()
    return ScratchTree(root, pristine, [home])


def content(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def do_nothing(_: Path) -> None:
    """Leave everything as it is."""


def change(root: Path) -> None:
    (root / "pkg/a.py").write_text("a = 2\n")


def change_unnoticed(root: Path) -> None:
    (root / "pkg/a.py").write_text("a = 3\n")
    os.utime(root / "pkg/a.py", ns=(0, 0))


def add(root: Path) -> None:
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/file").write_text("x")


def delete_all(root: Path) -> None:
    shutil.rmtree(root / "pkg")
    (root / "run.sh").unlink()
    (root / "link").unlink()


def swap_for_a_link(root: Path) -> None:
    shutil.rmtree(root / "pkg")
    (root / "pkg").symlink_to(root.parent / "outside")
    (root.parent / "outside").mkdir()
    (root.parent / "outside/a.py").write_text("keep me\n")


def lock_up(root: Path) -> None:
    (root / "pkg/a.py").unlink()
    (root / "pkg").chmod(0o500)


@pytest.mark.parametrize(
    "harm", [do_nothing, change, change_unnoticed, add, delete_all, swap_for_a_link, lock_up]
)
def test_whatever_a_test_does_to_the_copy_is_undone(
    tmp_path: Path, tree: ScratchTree, harm: object
) -> None:
    """Changed, new, deleted, replaced by a link, locked: afterwards every file is as it was, and
    nothing outside was touched.
    """
    root = tmp_path / "root"
    before, mode = content(root), (root / "run.sh").stat().st_mode
    assert callable(harm)
    harm(root)
    tree.restore(1.0, force=True)
    assert content(root) == before
    assert (root / "run.sh").stat().st_mode == mode
    assert (root / "link").readlink() == Path("pkg/a.py")
    assert not (root / "pkg").is_symlink()
    outside = tmp_path / "outside/a.py"
    assert not outside.exists() or outside.read_text() == "keep me\n"


def test_home_and_temporary_files_are_gone_after_every_run(
    tmp_path: Path, tree: ScratchTree
) -> None:
    (tmp_path / "home/.cache/x").mkdir(parents=True)
    (tmp_path / "home/file").write_text("x")
    tree.restore(0.0)
    assert list((tmp_path / "home").iterdir()) == []


def test_a_large_copy_is_looked_at_less_often(tmp_path: Path, tree: ScratchTree) -> None:
    """Looking takes a bounded share of the time that tests take, unless it is demanded."""
    tree.restore(1.0, force=True)
    add(tmp_path / "root")
    tree.restore(0.0)
    assert (tmp_path / "root/new").exists()
    tree.restore(1000.0)
    assert not (tmp_path / "root/new").exists()
    add(tmp_path / "root")
    tree.restore(0.0, force=True)
    assert not (tmp_path / "root/new").exists()
