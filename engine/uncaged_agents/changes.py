"""Changes of files: what each step of a thread did to them, and the merge of its branch into the
person's checkout.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.git import Git
from uncaged_engine.services.journal import COMMIT, journal_bytes
from uncaged_engine.services.threads import ThreadView, parse_records

from .fetching import fetch_branch, has_carried_files
from .workspace import Workspace, snapshot_of

DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """Changes of files between two commits.

    step: the step that made them; None for the whole thread. files: ``{"path", "added",
    "removed"}`` with numbers of lines, None for a binary file. patch: git's own form.
    """

    step: int | None
    before: str
    after: str
    files: tuple[Mapping[str, object], ...]
    patch: str

    def document(self) -> dict[str, object]:
        """Return the changes as JSON data."""
        return {
            "step": self.step,
            "before": self.before,
            "after": self.after,
            "files": list(self.files),
            "patch": self.patch,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """Merge into the branch that the person's checkout is on. changed: False if the branch held
    everything before.
    """

    branch: str
    into: str
    commit: str
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadBranch:
    """Branch of a thread in a person's checkout. git: there. commit: where the branch is."""

    git: Git
    name: str
    commit: str


def changes_of(
    store: Store, view: ThreadView, step: int | None, environment: Mapping[str, str]
) -> FileChanges:
    """Return the changes of *step*, or of the whole thread.

    Raises:
        NotFoundError: the thread has no workspace, or the step left no snapshot.
    """
    git, workspace = _git(store, view, environment)
    snapshots = {
        int(record["seq"]): commit
        for record in view.records
        if (commit := _snapshot(record)) is not None
    }
    if not snapshots:
        raise NotFoundError(f"no step of thread {view.summary.thread_id} has worked on files yet")
    if step is not None and step not in snapshots:
        numbers = ", ".join(map(str, sorted(snapshots)))
        raise NotFoundError(
            f"step {step} of thread {view.summary.thread_id} left no snapshot of files; these did: {numbers}"
        )
    first, last = (min(snapshots), max(snapshots)) if step is None else (step, step)
    return _compare(git, _before(git, snapshots[first], workspace.base), snapshots[last], step)


def changes_of_step(
    store: Store,
    thread: ThreadId,
    start: Mapping[str, Any],
    step: Mapping[str, Any],
    environment: Mapping[str, str],
) -> FileChanges | None:
    """Return the changes of a finished step; None if it left no snapshot.

    Raises:
        UncagedError: the workspace or its repository is not here.
    """
    snapshot = _snapshot(step)
    if snapshot is None:
        return None
    workspace = Workspace.of(start, store, thread, environment=environment)
    if workspace is None:
        raise NotFoundError(f"the workspace of thread {thread} is not on this machine")
    if workspace.carried is not None:
        data = journal_bytes(store.locate_thread(thread)[2])
        workspace.bring(parse_records(data, BlobDirectory(store.blobs)))
    git = _git_of(workspace.repository, workspace, environment)
    return _compare(git, _before(git, snapshot, workspace.base), snapshot, int(step["seq"]))


def changes_between(
    store: Store, one: ThreadView, other: ThreadView, environment: Mapping[str, str]
) -> FileChanges:
    """Return how the files of *other* differ from those of *one*, after the last step of each.

    Raises:
        NotFoundError: a thread has no workspace. RefusedError: they worked on other repositories.
    """
    git, first = _git(store, one, environment)
    _, second = _git(store, other, environment)
    if first.repository != second.repository:
        raise RefusedError(f"{first.repository} and {second.repository} are not compared")
    before, after = (
        _last_commit(view, workspace) for view, workspace in ((one, first), (other, second))
    )
    return _compare(git, before, after, None)


def branch_in_checkout(
    store: Store, view: ThreadView, directory: Path | None, environment: Mapping[str, str]
) -> ThreadBranch:
    """Return the branch of a thread in a person's checkout; one whose files are in the store is
    fetched first.

    Args:
        directory: anywhere in another checkout that gets a branch which is fetched.
    Raises:
        NotFoundError: there is no workspace, or the branch is gone. UsageError: *directory* for a
            branch that is in a repository. Others: as `fetch_branch`.
    """
    thread = ThreadId(view.summary.thread_id)
    if has_carried_files(view):
        fetched = fetch_branch(store, view, directory, environment)
        git = Git(directory=fetched.repository, environment=environment)
        found = ThreadBranch(git=git, name=fetched.branch, commit=fetched.commit or "")
        if not found.commit:
            raise NotFoundError(
                f"thread {thread} made no commit; see its file changes with `uncaged-workflow thread diff {thread}`"
            )
        return found
    git, workspace = _checkout(store, view, environment)
    if directory is not None:
        raise UsageError(
            f"the branch of thread {thread} is in {workspace.checkout}; only one in a shared store is merged elsewhere"
        )
    commit = _head(git, workspace)
    if not commit:
        raise NotFoundError(
            f"the branch {workspace.branch} of thread {thread} does not exist in {workspace.checkout}"
        )
    return ThreadBranch(git=git, name=workspace.branch, commit=commit)


def branch_changes(branch: ThreadBranch) -> FileChanges:
    """Return the changes that a merge of a thread's branch would bring into the checkout."""
    before = branch.git.line("merge-base", "HEAD", branch.commit)
    return _compare(branch.git, before, branch.commit, None)


def is_merged(store: Store, view: ThreadView, environment: Mapping[str, str]) -> bool:
    """Return whether nothing is left to merge: the checkout holds the branch's commits, or the
    branch or its repository is gone.
    """
    try:
        git, workspace = _checkout(store, view, environment)
        after = _head(git, workspace)
        return not after or git.line("merge-base", "HEAD", after) == after
    except UncagedError:
        return True


def merge(branch: ThreadBranch, environment: Mapping[str, str]) -> MergeResult:
    """Merge a thread's branch into the checkout; a merge that stops in a conflict is taken back.

    The person's own git settings and hooks count, as in any merge of theirs.

    Raises:
        RefusedError: git would not merge; the message has its words and the files in conflict.
    """
    git = branch.git
    into = git.line("rev-parse", "--abbrev-ref", "HEAD")
    former = git.line("rev-parse", "HEAD")
    command = ["git", "merge", "--no-edit", "-m", f"Merge branch '{branch.name}'", branch.commit]
    done = subprocess.run(
        command,
        cwd=git.directory,
        env=dict(environment),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        unmerged = git.line("diff", "--name-only", "--diff-filter=U").split("\n")
        if git.run("rev-parse", "--quiet", "--verify", "MERGE_HEAD", accept=(0, 1)):
            git.run("merge", "--abort")
        conflicts = f"; in conflict: {', '.join(unmerged)}" if any(unmerged) else ""
        words = (done.stderr.strip() or done.stdout.strip())[:2000]
        raise RefusedError(
            f"git did not merge {branch.name} into {into}, which is as it was: {words}{conflicts}"
        )
    commit = git.line("rev-parse", "HEAD")
    return MergeResult(branch=branch.name, into=into, commit=commit, changed=commit != former)


def _git(store: Store, view: ThreadView, environment: Mapping[str, str]) -> tuple[Git, Workspace]:
    """Return git where the thread's snapshots are."""
    workspace = _workspace(store, view, environment)
    workspace.bring(view.records)
    return _git_of(workspace.repository, workspace, environment), workspace


def _checkout(
    store: Store, view: ThreadView, environment: Mapping[str, str]
) -> tuple[Git, Workspace]:
    """Return git in the person's checkout."""
    workspace = _workspace(store, view, environment)
    return _git_of(workspace.checkout, workspace, environment), workspace


def _workspace(store: Store, view: ThreadView, environment: Mapping[str, str]) -> Workspace:
    thread = ThreadId(view.summary.thread_id)
    workspace = Workspace.of(view.start, store, thread, environment=environment)
    if workspace is None and view.summary.imported:
        raise NotFoundError(
            f"thread {thread} was imported and its workspace stayed behind; `fork` and `resume` choose one here"
        )
    if workspace is None:
        raise NotFoundError(
            f"thread {thread} has no workspace: none of its roles may work on files"
        )
    return workspace


def _git_of(repository: Path, workspace: Workspace, environment: Mapping[str, str]) -> Git:
    if not repository.is_dir():
        raise UncagedError(f"the repository {repository} of thread {workspace.thread_id} is gone")
    return Git(directory=repository, environment=environment)


def _head(git: Git, workspace: Workspace) -> str:
    """Return the commit at the thread's branch; empty if the branch is gone."""
    return (
        git.run(
            "rev-parse",
            "--quiet",
            "--verify",
            f"refs/heads/{workspace.branch}^{{commit}}",
            accept=(0, 1),
        )
        .decode()
        .strip()
    )


def _compare(git: Git, before: str, after: str, step: int | None) -> FileChanges:
    listed = git.run(*DIFF, "--numstat", "-z", before, after)
    patch = git.run(*DIFF, "--patch", before, after).decode("utf-8", "replace")
    return FileChanges(
        step=step, before=before, after=after, files=tuple(_files(listed)), patch=patch
    )


def _snapshot(record: Mapping[str, Any]) -> str | None:
    """Return the snapshot of a finished step; an imported record may hold anything."""
    found = None if "sub" in record else snapshot_of(record)
    return found if found is not None and COMMIT.fullmatch(found) else None


def _last_commit(view: ThreadView, workspace: Workspace) -> str:
    """Return the last snapshot of a thread; before any, the commit that it began with."""
    found = (_snapshot(record) for record in reversed(view.records))
    return next((commit for commit in found if commit is not None), workspace.base)


def _before(git: Git, snapshot: str, base: str) -> str:
    """Return the commit of the files before a step: its snapshot's last parent is the snapshot
    before it.
    """
    parents = git.line("rev-list", "--parents", "-n", "1", snapshot).split()[1:]
    return parents[-1] if parents else base


def _files(listed: bytes) -> list[Mapping[str, object]]:
    """Return the entries of ``--numstat -z``: three fields and a path, or for a rename an empty
    path and two more.
    """
    parts = listed.decode("utf-8", "replace").split("\0")
    found: list[Mapping[str, object]] = []
    while len(parts) > 1:
        added, removed, path = parts.pop(0).split("\t", 2)
        if not path:
            former, path = parts.pop(0), parts.pop(0)
            path = f"{former} → {path}"
        count = [None if number == "-" else int(number) for number in (added, removed)]
        found.append({"path": path, "added": count[0], "removed": count[1]})
    return found
