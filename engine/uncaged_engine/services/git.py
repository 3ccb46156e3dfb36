"""Runner of git, with hooks, filters and the environment of the caller under control."""

from __future__ import annotations

from ..processes.git import IDENTITY, Git, GitError, WorkspaceError, on_disk

__all__ = ["IDENTITY", "Git", "GitError", "WorkspaceError", "on_disk"]
