"""Claims of agents about the workspace, checked by the engine.

A role's schema marks a field with ``x-claim``; a value that does not hold makes the answer
unusable, as a wrong type would.

==========  ========================================================================================
git.branch  the branch that the thread's worktree is on
git.commit  the full id of a commit on that branch that was made in this thread
git.files   a path, or a list of paths, each changed since the thread or the step began, as git sees
            it (ignored files are not seen)
tests       true: the thread's test command exits with 0 on a copy of the worktree, in the script
            sandbox. Without a test command nothing is checked: the value is the agent's word
==========  ========================================================================================

An empty text, an empty list and null claim nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentRequest
from uncaged_engine.services.git import on_disk
from uncaged_engine.services.journal import COMMIT

from ..workspace import Workspace

SHOWN = 5
OUTPUT_CHARACTERS = 300
TESTS_S = 900.0
NEXT = "report what is there, or do first what is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Checks of claims for one request. latest: the snapshot of the step before, if there is
    one.
    """

    workspace: Workspace | None
    request: AgentRequest
    latest: str | None

    def problem(self, claim: str, value: object) -> str | None:
        """Return why *value* does not hold; None if it does, or if nothing can be checked.

        Raises:
            EnvironmentLacks: git or the sandbox is not usable.
        """
        if value is None or value in ("", []):
            return None
        if self.workspace is None:
            return f"{claim} cannot be checked: the flow has no workspace"
        problem = self._check(self.workspace, claim, value)
        return problem and f"{problem} ({NEXT})"

    def _check(self, workspace: Workspace, claim: str, value: object) -> str | None:
        match claim:
            case "git.branch":
                return self._branch(workspace, value)
            case "git.commit":
                return self._commit(workspace, value)
            case "git.files":
                return self._files(workspace, value)
            case "tests":
                return self._tests(workspace, value)
            case _:
                return f"the claim {claim!r} is not known here"

    def _branch(self, workspace: Workspace, value: object) -> str | None:
        found = workspace.current_branch()
        where = f"is on {found!r}" if found is not None else "is on no branch"
        return (
            None
            if value == found
            else f"{value!r} is not the branch of the working tree, which {where}"
        )

    def _commit(self, workspace: Workspace, value: object) -> str | None:
        if (
            not isinstance(value, str)
            or not COMMIT.fullmatch(value)
            or not workspace.has_commit(value)
        ):
            return f"there is no commit {value!r} in the repository"
        if not workspace.made_commit(value):
            return (
                f"the commit {value} was not made in this thread, on the branch of the working tree"
            )
        return None

    def _files(self, workspace: Workspace, value: object) -> str | None:
        listed = value if isinstance(value, list) else [value]
        names = [name for name in listed if isinstance(name, str)]
        changed = workspace.changed_paths(self.latest)
        wrong = [
            name for name in names if not any(path in changed for path in _paths(name, workspace))
        ]
        return (
            f"not changed, as git sees it: {', '.join(map(repr, wrong[:SHOWN]))}" if wrong else None
        )

    def _tests(self, workspace: Workspace, value: object) -> str | None:
        command = self.request.test_command
        if value is not True or command is None:
            return None
        from ..tools.commands import Commands
        from ..tools.working_directory import ToolError, WorkingDirectory

        request = self.request
        request.progress({"text": f"checking the claim that the tests pass: {command}"})
        with copied(workspace.tree, request.scratch / "claim") as copy:
            commands = Commands(
                workdir=WorkingDirectory(top=copy, here=copy / workspace.subdirectory),
                environment=request.environment,
                reads=request.reads,
                writable=True,
                network=False,
                sandbox=request.sandbox,
                cancel=request.cancel,
            )
            try:
                done = commands.run(
                    ["sh", "-c", command], timeout_s=min(TESTS_S, request.timeout_s)
                )
            except ToolError as exc:
                raise EnvironmentLacks(
                    f"the test command cannot be run: {exc}", remedy="set PATH"
                ) from exc
        if done.exit_code == 0:
            return None  # a run that a kill ended proves nothing
        output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-OUTPUT_CHARACTERS:]
        end = "takes too long" if done.timed_out else f"ends with exit code {done.exit_code}"
        return f"the tests do not pass: {command!r} {end}: {output}"


def _paths(name: str, workspace: Workspace) -> Iterator[str]:
    """Yield the paths that *name* may mean: from the worktree's root, or from the directory where
    the agent works.
    """
    for start in (workspace.tree, workspace.directory):
        yield os.path.relpath(os.path.normpath(start / name), workspace.tree)


@contextmanager
def copied(tree: Path, place: Path) -> Iterator[Path]:
    """Copy a worktree to *place* while the block runs, so that files of a test run are removed with
    it.
    """
    shutil.rmtree(place, ignore_errors=True)
    with on_disk(place):
        shutil.copytree(tree, place, symlinks=True, ignore=_special)
    try:
        yield place.resolve()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _special(directory: str, names: list[str]) -> list[str]:
    """Return what cannot be copied: pipes, sockets and devices."""
    paths = (Path(directory, name) for name in names)
    return [
        path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())
    ]
