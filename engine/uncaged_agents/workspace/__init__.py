"""Git worktrees of threads: inspected by clients, created by workers, kept by snapshots."""

from uncaged_engine.services.git import WorkspaceError

from .carried import carry
from .checkout import forked, inspect
from .unused import remove_unused
from .worktree import Workspace, last_snapshot, snapshot_of

__all__ = [
    "Workspace",
    "WorkspaceError",
    "carry",
    "forked",
    "inspect",
    "last_snapshot",
    "remove_unused",
    "snapshot_of",
]
