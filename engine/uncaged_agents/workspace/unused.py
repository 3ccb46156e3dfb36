"""Removal of a worktree and a branch that hold no work, after a thread ended without success. Its
snapshots stay, so that it can be forked.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from uncaged_engine.services.git import Git

from .worktree import Workspace

CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"}
)
"""Names of files and directories that programs make again on their own."""


def remove_unused(workspace: Workspace) -> bool:
    """Remove the worktree and its branch if they hold nothing that was made in the thread; return
    whether they did.

    A commit, a change, an untracked or ignored file, a lock of the worktree, a second worktree on
    the branch, or a process that works in it keeps both.
    """
    if not workspace.exists():
        return False
    with workspace.locked():
        if _is_used(workspace):
            return False
        # crash here: the end is on disk, the unused worktree still there; `prune` removes it
        workspace.drop()
    return True


def _is_used(workspace: Workspace) -> bool:
    git = Git(directory=workspace.repository, environment=workspace.environment)
    if workspace.current_branch() != workspace.branch or _has_commits(workspace, git):
        return True
    new = frozenset(workspace.untracked())
    ours = {path for path in new if _is_ours(path, workspace.links)}
    return (
        bool(new - ours)
        or bool(workspace.changed_paths(None) - ours)
        or _is_held(workspace, git)
        or _has_process(workspace.tree)
    )


def _has_commits(workspace: Workspace, git: Git) -> bool:
    """Return whether the branch is or ever was at another commit than the base."""
    ref = f"refs/heads/{workspace.branch}"
    if git.line("rev-parse", "--verify", ref) != workspace.base:
        return True
    past = git.run("rev-list", "--walk-reflogs", ref, "--").split()
    return any(commit.decode() != workspace.base for commit in past)


def _is_held(workspace: Workspace, git: Git) -> bool:
    """Return whether the worktree is locked, or the branch is checked out a second time."""
    listing = git.run("worktree", "list", "--porcelain", "-z").decode("utf-8", "surrogateescape")
    for entry in listing.split("\0\0"):
        lines = entry.strip("\0").split("\0")
        own = Path(lines[0].removeprefix("worktree ")).resolve() == workspace.tree.resolve()
        if own and any(line.partition(" ")[0] == "locked" for line in lines):
            return True
        if not own and f"branch refs/heads/{workspace.branch}" in lines:
            return True
    return False


def _is_ours(path: str, links: tuple[str, ...]) -> bool:
    """Return whether an untracked path is one of our links, or a cache."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(link) for link in links) or not CACHES.isdisjoint(pure.parts)


def _has_process(tree: Path) -> bool:
    """Return whether a process works in the worktree, such as a person's shell. Only Linux tells,
    and of other users' processes only to root.
    """
    place = tree.resolve()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if entry.readlink().is_relative_to(place):
                return True
        except OSError:
            continue
    return False
