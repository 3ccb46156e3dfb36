"""Mirror of a Python environment in a worktree, which imports the worktree's code instead of the
checkout's.

Scripts name their interpreter by path, and an editable install names the checkout by path. Those
few small files are written anew with the worktree's path in them; everything else is a link.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

OPENED = (
    "bin",
    "lib",
    "lib64",
    "lib/python*",
    "lib64/python*",
    "lib/python*/site-packages",
    "lib64/python*/site-packages",
)
"""The directories of an environment that hold such files, or lead to them."""

COPIED = frozenset({"pyvenv.cfg", ".gitignore"})
SKIPPED = frozenset({"__pycache__"})
MAX_BYTES = 1 << 20


def is_venv(directory: Path) -> bool:
    return (directory / "pyvenv.cfg").is_file()


def mirror_venv(
    source: Path, target: Path, *, repository: Path, tree: Path, inside: Path = Path()
) -> None:
    """Fill the empty directory *target* with the content of the environment *source*, with
    *repository* replaced by *tree*.
    """
    for child in (source / inside).iterdir():
        path = inside / child.name
        mirrored = target / path
        if child.name in SKIPPED:
            continue
        if child.is_symlink() and is_local(child.readlink()):
            mirrored.symlink_to(child.readlink())
        elif child.is_dir() and any(
            path.match(pattern) and len(path.parts) == len(Path(pattern).parts)
            for pattern in OPENED
        ):
            mirrored.mkdir()
            mirror_venv(source, target, repository=repository, tree=tree, inside=path)
        elif child.name in COPIED:
            shutil.copyfile(child, mirrored)
        elif not (
            names_paths(path)
            and rewrite(child, mirrored, str(repository).encode(), str(tree).encode())
        ):
            mirrored.symlink_to(child)


def is_local(link: Path) -> bool:
    """Return whether a link such as ``python3 -> python`` stays within its directory; the mirror
    has it unchanged.
    """
    return not link.is_absolute() and ".." not in link.parts


def names_paths(path: Path) -> bool:
    """Return whether installers write paths into this file."""
    return (
        path.parts[0] == "bin"
        or path.suffix in {".pth", ".egg-link"}
        or path.name.startswith("__editable__")
    )


def rewrite(source: Path, target: Path, old: bytes, new: bytes) -> bool:
    """Write *source* anew with *old* replaced; False when it is no small file or does not name
    *old*.
    """
    if source.is_symlink() or not source.is_file() or source.stat().st_size > MAX_BYTES:
        return False
    data = source.read_bytes()
    # /home/me/app, but not /home/me/app2
    moved = re.sub(re.escape(old) + rb"(?![\w.-])", lambda _: new, data)
    if moved == data or b"\0" in data:
        return False
    target.write_bytes(moved)
    shutil.copymode(source, target)
    return True
