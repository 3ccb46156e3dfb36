"""Links from a worktree to the ignored dependencies of its repository, which git still ignores
there.

A directory becomes a real directory of links to what the original holds, not one link: patterns
such as ``.venv/`` match directories only, and a package that an agent installs lands in the
worktree instead of in the person's own ``node_modules``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from .venv import is_venv, mirror_venv

DEPENDENCY_NAMES = frozenset({".venv", "venv", "node_modules"})


def make_links(names: Iterable[str], repository: Path, tree: Path) -> None:
    """Link each of *names* (relative paths) from *tree* into *repository*; an existing target
    stays, a missing source is skipped.
    """
    for name in names:
        source, target = repository / name, tree / name
        if target.is_symlink() or target.exists() or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir():
            target.symlink_to(source)
            continue
        # crash here: the next call starts it anew
        half = target.with_name(f"{target.name}.uncaged-half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        if is_venv(source):
            mirror_venv(source, half, repository=repository, tree=tree)
        else:
            link_children(source, half)
        half.rename(target)


def link_children(source: Path, target: Path) -> None:
    for child in source.iterdir():
        if child.name == ".gitignore" and child.is_file():  # git reads none through a link
            shutil.copyfile(child, target / child.name)
        else:
            (target / child.name).symlink_to(child)


def translated(
    environment: dict[str, str], names: Iterable[str], repository: Path, tree: Path
) -> dict[str, str]:
    """Point PATH and VIRTUAL_ENV of a child to the worktree's mirror where they name a linked
    directory of the repository.

    Otherwise an activated environment would test the person's checkout instead of the worktree.
    """
    linked = [repository / name for name in names]

    def moved(entry: str) -> str:
        path = Path(entry)
        inside = any(path.is_relative_to(directory) for directory in linked)
        return str(tree / path.relative_to(repository)) if inside else entry

    result = dict(environment)
    if "PATH" in result:
        result["PATH"] = ":".join(moved(entry) for entry in result["PATH"].split(":"))
    if "VIRTUAL_ENV" in result:
        result["VIRTUAL_ENV"] = moved(result["VIRTUAL_ENV"])
    return result
