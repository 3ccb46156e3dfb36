"""Branch of a thread whose files are carried, brought into a person's repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.git import Git, GitError
from uncaged_engine.services.journal import PACK_KEY
from uncaged_engine.services.threads import ThreadView

from .workspace import Workspace
from .workspace.carried import packs_of, strict
from .workspace.checkout import branch_of, top_of
from .workspace.snapshots import UNREPLACED


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBranch:
    """Branch of a thread in a repository. commit: where it is; None if the thread made no commit.
    changed: False if it was there before.
    """

    repository: Path
    branch: str
    commit: str | None
    changed: bool


def has_carried_files(view: ThreadView) -> bool:
    """Tell whether the thread's files are in its store."""
    workspace = view.start.get("workspace")
    return isinstance(workspace, Mapping) and PACK_KEY in workspace


def fetch_branch(
    store: Store, view: ThreadView, directory: Path | None, environment: Mapping[str, str]
) -> FetchedBranch:
    """Make or move the thread's branch in a repository, as its last finished step left it. No other
    ref, no file and no setting there changes.

    Args:
        directory: anywhere in a checkout; None: the one in which the thread was started.
    Raises:
        NotFoundError: the thread carries no files, or its repository is not here. UsageError:
            *directory* is in no repository. RefusedError: a person moved the branch or works on it,
            or the repository lacks the history of the commit from which the thread started.
        DamagedError: the files in the store are damaged.
    """
    workspace = Workspace.of(
        view.start, store, ThreadId(view.summary.thread_id), environment=environment
    )
    if workspace is None or workspace.carried is None:
        raise NotFoundError(
            f"thread {view.summary.thread_id} has no files in its store: none of its roles may work on any, or it was"
            " started in a directory"
        )
    # the writer of the record does not choose among the person's branches
    if workspace.branch != branch_of(str(view.start.get("name")), workspace.thread_id):
        raise DamagedError(
            f"thread {workspace.thread_id}: its start record names the branch {workspace.branch!r}, which is another's"
        )
    git = _target(workspace, directory, environment)
    has_base = _has(git, workspace.base)
    if has_base and store.is_shared:  # what this process reads of the store ends with it
        objects = git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
        workspace.carried.borrow(Path(objects))
    workspace.bring(view.records)
    places = [workspace.base]
    places += [
        place for one in packs_of(view.records) if (place := workspace.branch_at(one.commit))
    ]
    commit, branch = places[-1], f"refs/heads/{workspace.branch}"
    former = git.run("rev-parse", "--quiet", "--verify", branch, accept=(0, 1)).decode().strip()
    top = git.directory
    if former == commit or (not former and commit == workspace.base):
        return FetchedBranch(
            repository=top, branch=workspace.branch, commit=former or None, changed=False
        )
    if former and former not in places:
        raise RefusedError(
            f"{top} has the branch {workspace.branch} at {former[:12]}, where the thread has never been; rename it, then"
            " fetch again"
        )
    _refuse_checked_out(git, workspace.branch)
    _copy_objects(workspace, git, commit, has_base=has_base)
    words = f"uncaged-workflow: thread {workspace.thread_id}"
    git.run("update-ref", "-m", words, branch, commit, former or "0" * len(commit))
    return FetchedBranch(repository=top, branch=workspace.branch, commit=commit, changed=True)


def _target(workspace: Workspace, directory: Path | None, environment: Mapping[str, str]) -> Git:
    """Return git in the repository that gets the branch."""
    if directory is None and not (workspace.checkout / ".git").exists():
        raise NotFoundError(
            f"the repository {workspace.checkout} is not on this machine; name a clone with --workspace DIR"
        )
    here = Git(directory=directory or workspace.checkout, environment=environment)
    return Git(directory=top_of(here), environment=environment, variables=UNREPLACED)


def _refuse_checked_out(git: Git, branch: str) -> None:
    listing = git.run("worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
    for entry in listing.split("\n\n"):
        lines = entry.strip().split("\n")
        if f"branch refs/heads/{branch}" in lines:
            where = lines[0].removeprefix("worktree ")
            raise RefusedError(
                f"the branch {branch} is checked out in {where}; switch to another one there, then fetch again"
            )


def _copy_objects(workspace: Workspace, git: Git, commit: str, *, has_base: bool) -> None:
    """Copy what *commit* needs and the repository lacks."""
    source = Git(
        directory=workspace.repository,
        environment=workspace.environment,
        variables={"GIT_DIR": str(workspace.repository)},
    )
    if not has_base and not any(_has(git, parent) for parent in _parents(source, workspace.base)):
        raise _lacks_start(workspace, git)
    lines = f"{commit}\n" + (f"^{workspace.base}\n" if has_base else "")
    data = source.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=lines.encode())
    try:
        git.run("index-pack", strict(), "--stdin", stdin=data)
        git.run("rev-list", "--objects", "--quiet", commit, "--not", "--all")
    except GitError as exc:
        if "No space left" in exc.words:
            raise
        raise _lacks_start(workspace, git) from exc


def _lacks_start(workspace: Workspace, git: Git) -> RefusedError:
    return RefusedError(
        f"{git.directory} lacks commit {workspace.base[:12]}, from which the thread started, or its"
        " history; `git fetch` it there first, or name another clone with --workspace DIR"
    )


def _parents(git: Git, commit: str) -> list[str]:
    """Return the parents that a commit names; the repository may lack them."""
    text = git.run("cat-file", "commit", commit).decode("utf-8", "replace").partition("\n\n")[0]
    return [line.split()[1] for line in text.split("\n") if line.startswith("parent ")]


def _has(git: Git, commit: str) -> bool:
    found = git.run("rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}", accept=(0, 1, 128))
    return bool(found.strip())
