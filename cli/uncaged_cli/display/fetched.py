"""Branch of a thread of a shared store in the person's repository: brought at the end of a thread
that was followed, or by `thread fetch`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uncaged_bundles.errors import NotFoundError, UncagedError

from .output import Styled, next_step, note

if TYPE_CHECKING:
    from uncaged_agents.fetching import FetchedBranch
    from uncaged_engine.api import Engine, ThreadView

SHORT_COMMIT = 12


def bring_branch(engine: Engine, view: ThreadView) -> FetchedBranch | UncagedError | None:
    """Bring the branch of a thread that has ended into the repository where it was started.

    Returns:
        The branch, or why it could not be brought; None for a thread whose files are not carried,
        or that has not ended.
    """
    from uncaged_agents.fetching import fetch_branch, has_carried_files

    if view.end is None or not has_carried_files(view):
        return None
    try:
        return fetch_branch(engine.store, view, None, os.environ)
    except UncagedError as exc:
        return exc


def note_brought(thread_id: str, found: FetchedBranch | UncagedError | None) -> None:
    """Print where a branch was brought, or how to get it."""
    if isinstance(found, UncagedError):
        warning = () if isinstance(found, NotFoundError) else (Styled("warning: ", "yellow"),)
        note(*warning, str(found))
        next_step(f"uncaged-workflow thread fetch {thread_id} --workspace DIR")
    elif found is not None and found.changed:
        note(fetched_line(found))


def fetched_line(found: FetchedBranch) -> str:
    """Return a sentence about a branch that was fetched."""
    if found.commit is None:
        return (
            f"the thread made no commit, so that {found.repository} gets no branch {found.branch}"
        )
    place = f"at {found.commit[:SHORT_COMMIT]}"
    if not found.changed:
        return f"{found.repository} already has the branch {found.branch} {place}"
    return f"{found.repository} has the branch {found.branch} {place}"


def note_left_behind(start: Mapping[str, object]) -> None:
    """Print which ignored directories of the repository the workers will not have."""
    if names := left_behind(start):
        note(f"not carried to the workers, since git ignores it: {names}")


def left_behind(start: Mapping[str, object]) -> str:
    """Return the names of ignored directories that were not carried, in a row."""
    workspace = start.get("workspace")
    names = workspace.get("leftBehind") if isinstance(workspace, Mapping) else None
    return ", ".join(map(str, names)) if isinstance(names, Sequence) else ""
