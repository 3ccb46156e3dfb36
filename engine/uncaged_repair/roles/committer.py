"""Committer role: makes one commit on the worktree's branch, with the test runs before and after in
its message.

Hooks of the repository do not run and the commit is not signed: both may need a person or a
network, and the message says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_engine.services.git import Git, GitError
from uncaged_engine.services.processes import named_in

from ..task import Progress, Task
from .answers import FIRST_LINE, answer, list_names
from .changes import changed_paths
from .scope import scope_of
from .summary import relations, summaries, texts

WIDTH = 72
MAX_NAMES = 10


def commit(task: Task, progress: Progress) -> str:
    """Return the committer's answer."""
    git = Git(directory=task.worktree, environment=task.environment)
    try:
        top = Git(
            directory=Path(git.line("rev-parse", "--show-toplevel")), environment=task.environment
        )
        branch = top.line("branch", "--show-current")
        if not branch:
            return _failed("the worktree is on no branch")
        paths = [path for path in changed_paths(top, "HEAD") if not _stray_link(top, path)]
        if not paths:
            return _failed("nothing is changed in the worktree, so there is nothing to commit")
        progress("committing")
        top.run(
            "add",
            "--all",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            stdin=b"\0".join(os.fsencode(f":(top,literal){path}") for path in paths),
        )
        text = message(task, paths)
        top.run(
            "commit",
            "--no-verify",
            "--cleanup=verbatim",
            "--file=-",
            stdin=text.encode("utf-8", "replace"),
            more=top.identity(),
        )
        sha = top.line("rev-parse", "HEAD")
    except GitError as exc:
        if named_in(exc.words) is not None:
            raise  # the disk is full: a person makes room and resumes
        return _failed(str(exc))
    lines = [
        f"Committed {sha[:12]} on {branch}: {', '.join(paths)}.",
        "Hooks were not run and the commit is not signed.",
        "",
        *text.splitlines(),
    ]
    return answer(lines, {"status": "committed", "branch": branch, "commitSha": sha})


def message(task: Task, paths: Sequence[str]) -> str:
    """Return the commit message: the changed files, the test runs before and after, the repaired
    tests and their relation to the prompt, the edits, and what else passes.
    """
    steps = task.steps
    subject = f"Repair {list_names(paths, 2)}"
    body = [subject if len(subject) <= WIDTH else f"Repair {len(paths)} files", ""]
    before, after = _test_report(steps, "planner", "Ran "), _test_report(steps, "reviewer", "Ran ")
    body += [f"Before: {before}"] if before else []
    body += [f"After: {after}"] if after else []
    repaired = texts(task, "repaired")
    body += [f"Repaired: {list_names(repaired, MAX_NAMES)}."] if repaired else []
    body += [f"The prompt {text}." for text in relations(task)]
    left = sorted(scope_of(task).left_alone.difference(repaired))
    body += [f"Left alone, they fail as before: {list_names(left, MAX_NAMES)}."] if left else []
    body += ["", *(f"- {text}" for text in summaries(task)), *texts(task, "alternatives")]
    body += [*(f"REVIEW THIS: {text}." for text in texts(task, "doubts")), ""]
    body += [
        f"Found by the {FIRST_LINE.partition(';')[0]}; small edits were tried until the tests passed.",
        "Repository hooks were not run.",
    ]
    return "\n".join(body) + "\n"


def _failed(error: str) -> str:
    return answer([f"Not committed: {error}"], {"status": "unrecoverable", "error": error})


def _test_report(steps: Sequence[Mapping[str, object]], role: str, beginning: str) -> str:
    """Return the line of the last answer of *role* that reports its test run."""
    for step in reversed(steps):
        if step.get("role") == role:
            return next(
                (
                    line
                    for line in str(step.get("content", "")).splitlines()
                    if line.startswith(beginning)
                ),
                "",
            )
    return ""


def _stray_link(git: Git, path: str) -> bool:
    """Return whether *path* is a link out of the worktree: it was made for the tests and belongs
    into no commit.
    """
    place = git.directory / path
    return place.is_symlink() and place.readlink().is_absolute()
