"""Commits by the engine's own git, outside the sandbox: no hook runs, nothing is signed, and only
the thread's branch moves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_engine.services.git import Git, GitError

from .working_directory import ToolError, WorkingDirectory

SHOWN_PATHS = 50


def commit(
    workdir: WorkingDirectory, environment: Mapping[str, str], arguments: Mapping[str, Any]
) -> str:
    """Stage the named paths, or all changes, and commit them once."""
    message, paths = arguments["message"], arguments.get("paths")
    if not message.strip():
        raise ToolError("message is empty")
    git = Git(directory=workdir.top, environment=environment)
    try:
        branch = git.line("branch", "--show-current")
        if not branch:
            raise ToolError("the worktree is on no branch")
        git.run("reset", "--quiet")
        git.run("add", "--all", *_chosen(workdir, paths))
        if not git.run("diff", "--cached", "--name-only", "-z"):
            raise ToolError(
                "there is nothing to commit: "
                + ("the paths are unchanged or ignored" if paths else "nothing is changed")
            )
        git.run(
            "commit",
            "--no-verify",
            "--cleanup=strip",
            "--file=-",
            stdin=message.encode("utf-8", "replace"),
            more=git.identity(),
        )
        sha = git.line("rev-parse", "HEAD")
        names = git.line("diff-tree", "--no-commit-id", "--name-status", "-r", sha).splitlines()
        left = git.line("status", "--short").splitlines()
    except GitError as exc:
        raise ToolError(str(exc)) from exc
    lines = [
        f"committed {sha} on branch {branch}; the repository's hooks were not run and the commit is not signed",
        *names[:SHOWN_PATHS],
    ]
    lines += ["still not committed:", *left[:SHOWN_PATHS]] if left else ["nothing else is changed"]
    return "\n".join(lines)


def _chosen(workdir: WorkingDirectory, paths: Sequence[str] | None) -> list[str]:
    if not paths:
        return []
    # a link itself, not what it names
    chosen = [os.path.relpath(os.path.normpath(workdir.here / path), workdir.top) for path in paths]
    if any(path == ".." or path.startswith("../") for path in chosen):
        raise ToolError(f"{paths} lead out of the working tree")
    return ["--", *(f":(top,literal){path}" for path in chosen)]
