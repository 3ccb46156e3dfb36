"""Paths that an agent names: resolved inside the worktree with all links followed, or refused with
a reason.
"""

from __future__ import annotations

from ..tools.working_directory import ToolError, WorkingDirectory


def path_refusal(workdir: WorkingDirectory, name: str) -> str | None:
    """Return why an agent may not use a path; None if it may."""
    try:
        workdir.resolve(name)
    except ToolError as exc:
        return str(exc)
    return None


def display_path(workdir: WorkingDirectory, name: str) -> str:
    """Return a path for display: relative to the agent's directory if it is in the worktree."""
    try:
        return workdir.name(workdir.resolve(name))
    except ToolError:
        return name


def read_part(workdir: WorkingDirectory, name: str, line: int | None, limit: int | None) -> str:
    """Return a file's text from the 1-based *line* on, at most *limit* lines of it.

    Raises:
        ToolError: it may not be read, or cannot be.
    """
    text = workdir.read(name)
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    return "".join(text.splitlines(keepends=True)[first : None if limit is None else first + limit])
