"""A removed thread leaves nothing behind: journal, debug log, torn tails, worktree, refs and an empty branch are gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container
from pathlib import Path

from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.files import sync_directory
from uncaged_bundles.storage.store import Store

from ..journal import lock
from ..state.observe import summarise, view
from .steering import end_leftovers


def remove(store: Store, bundle: BundleHash, thread: ThreadId, path: Path, *, among: Container[str] | None = None) -> None:
    """Delete a thread whose lock is free.

    Args:
        among: only if it stands like this, now that nobody else can change it.
    Raises:
        RefusedError: somebody took the lock meanwhile, or it stands in another way by now.
    """
    with lock.taken(path) as ours:
        if not ours:
            raise RefusedError(f"thread {thread} was taken up, archived or removed just now; look at it again")
        if among is not None and summarise(store, bundle, thread, path).status not in among:
            raise RefusedError(f"thread {thread} was taken up just now; look at it again")
        end_leftovers(store, thread)
        _remove_workspace(store, bundle, thread, path)
        for part in (*path.parent.glob(f".{thread}.*"), *sorted(path.parent.glob(f"{thread}.*"))):
            if part != path:
                part.unlink()
        path.unlink()  # last: an outdated archive beside it would become the thread
        sync_directory(path.parent)


def _remove_workspace(store: Store, bundle: BundleHash, thread: ThreadId, path: Path) -> None:
    try:
        start = view(store, bundle, thread, path).start
    except UncagedError:
        return  # an unreadable start names no workspace
    from ..workspace import Workspace, scratch_of

    workspace = Workspace.of(start, store, thread, environment=os.environ)
    if workspace is not None:
        workspace.remove()
    shutil.rmtree(scratch_of(store, thread), ignore_errors=True)
    (store.work / f"{thread}.null").unlink(missing_ok=True)
