"""Changes of a thread in its worktree: git's difference from the commit at the thread's start."""

from __future__ import annotations

from collections.abc import Sequence

from uncaged_engine.services.git import Git, GitError

from ..task import Task


def base_of(task: Task, git: Git) -> str:
    """Return the commit to compare with: the last snapshot before the first coder, else the
    branch's head.
    """
    for step in task.steps:
        if step.get("role") == "coder":
            break
        snapshot = step.get("snapshot")
        if isinstance(snapshot, str) and _known(git, snapshot):
            return snapshot
    return git.line("rev-parse", "HEAD")


def changed_paths(git: Git, base: str) -> list[str]:
    """Return the paths that differ from *base* in the worktree: changed, deleted, and new ones that
    are not ignored.
    """
    changed = git.run("diff", "--name-only", "--no-renames", "-z", base, "--").split(b"\0")
    new = git.run("ls-files", "--others", "--exclude-standard", "-z", "--", ":/").split(b"\0")
    known = set(git.run("ls-tree", "-r", "--name-only", "-z", "--full-tree", base).split(b"\0"))
    every = {*changed, *(path for path in new if path not in known)} - {b""}
    # a snapshot holds the files of submodules, which a commit cannot hold
    linked = git.submodules()
    inside = tuple(f"{name}/" for name in linked)
    paths = sorted(path.decode("utf-8", "surrogateescape") for path in every)
    return [path for path in paths if path not in linked and not path.startswith(inside)]


def content_at(git: Git, base: str, path: str) -> bytes | None:
    """Return the content of *path* at *base*; None if it did not exist."""
    try:
        return git.run("cat-file", "blob", f"{base}:{path}")
    except GitError:
        return None


def restore_files(git: Git, base: str, paths: Sequence[str]) -> None:
    """Restore *paths* in the worktree from *base*; files that are new since then are removed."""
    for path in paths:
        before = content_at(git, base, path)
        if before is None:
            (git.directory / path).unlink(missing_ok=True)
        else:
            git.run("restore", f"--source={base}", "--worktree", "--", f":(top,literal){path}")


def _known(git: Git, commit: str) -> bool:
    try:
        git.run("cat-file", "-e", f"{commit}^{{commit}}")
    except GitError:
        return False
    return True
