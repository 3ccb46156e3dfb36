"""Git worktree of a thread, on its own branch. The user's checkout never changes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from uncaged_engine.services.git import Git, GitError, WorkspaceError, on_disk
from uncaged_engine.services.journal import PACK_KEY

from .carried import CarriedRepository, packs_of
from .checkout import changes_bytes
from .links import make_links, translated
from .snapshots import Snapshots
from .submodules import copy_submodules

if TYPE_CHECKING:
    from uncaged_bundles.ids import ThreadId
    from uncaged_bundles.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeRecord:
    """Record of a finished worktree. first: the snapshot made before any agent worked in it."""

    common: Path
    admin: Path
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Worktree of one thread; see ``of``.

    repository: where the worktree belongs to: the user's checkout, or the bare repository of a
    thread whose files are carried. checkout: the user's; of a carried thread perhaps on another
    machine. tree: the worktree. scratch: private files of the thread, beside it.
    """

    thread_id: str
    repository: Path
    subdirectory: str
    base: str
    branch: str
    links: tuple[str, ...]
    submodules: tuple[str, ...]
    tree: Path
    scratch: Path
    environment: Mapping[str, str]
    checkout: Path
    carried: CarriedRepository | None = None

    @classmethod
    def of(
        cls,
        start: Mapping[str, object],
        store: Store,
        thread_id: ThreadId,
        *,
        environment: Mapping[str, str],
    ) -> Workspace | None:
        """Return the workspace that a start record names, or None; nothing is touched."""
        recorded = start.get("workspace")
        if not isinstance(recorded, Mapping):
            return None
        checkout = Path(str(recorded["repository"]))
        carried = _carried(recorded, store, thread_id, environment)
        return cls(
            thread_id=thread_id,
            repository=checkout if carried is None else carried.directory,
            checkout=checkout,
            carried=carried,
            subdirectory=str(recorded.get("subdirectory", "")),
            base=str(recorded["base"]),
            branch=str(recorded["branch"]),
            links=tuple(str(name) for name in cast("Sequence[object]", recorded.get("links", ()))),
            submodules=tuple(
                str(name) for name in cast("Sequence[object]", recorded.get("submodules", ()))
            ),
            tree=store.work / thread_id,
            scratch=store.private(thread_id),
            environment=environment,
        )

    @property
    def directory(self) -> Path:
        """Return the agent's directory: the worktree, or the subdirectory of it in which the person
        started.
        """
        return self.tree / self.subdirectory

    @property
    def ref(self) -> str:
        return f"refs/uncaged/{self.thread_id}"

    def pin(self, commit: str) -> None:
        """Let the thread's ref name *commit*, so that no garbage collection takes it before the
        worktree exists.

        For a base that was made of uncommitted changes, and for a fork, whose source may be
        removed.
        """
        self._git().run("update-ref", self.ref, commit)

    def bring(self, steps: Sequence[Mapping[str, object]]) -> None:
        """Make the repository of a carried thread from the packs that its finished steps name.

        Raises: as `CarriedRepository.bring`.
        """
        if self.carried is not None:
            self.carried.bring(packs_of(steps))

    def ensure(self, latest: str | None, *, now_ms: int) -> None:
        """Make the worktree unless it exists already.

        Args:
            latest: the snapshot of the last finished step, a fork's inherited ones included; a
                worktree that is made now starts from it.
        Raises:
            WorkspaceError: the repository is gone, the branch is in use elsewhere, the disk is full
                …; the message has git's words.
        """
        with on_disk(self.tree):
            if not self.exists():
                with self.locked():
                    # another role of the same thread may have made it meanwhile
                    if not self.exists():
                        self._make(latest, now_ms=now_ms)
            self._complete()

    def snapshot(self, seq: int, previous: str | None, *, now_ms: int) -> str:
        """Commit the worktree as step *seq* left it and return the commit. previous: the last
        finished step's snapshot, if any.
        """
        record = self._record()
        with on_disk(self.tree):
            return self._snapshots(record).take(
                self._message(seq), previous=previous or record.first, now_ms=now_ms
            )

    def kept_pack(self, snapshot: str, previous: str | None) -> Mapping[str, object]:
        """Return the field with the pack of a new snapshot, if the thread's files are carried.
        previous: the last finished step's snapshot, if any.
        """
        if self.carried is None:
            return {}
        branch = self._snapshots(self._record()).branch_at(snapshot)
        known = () if previous is None else (previous,)
        return {PACK_KEY: self.carried.put(snapshot, branch, known)}

    def branch_at(self, snapshot: str) -> str | None:
        """Return the commit at which the thread's branch was when *snapshot* was made."""
        record = WorktreeRecord(common=self.repository, admin=self.repository, first="")
        return self._snapshots(record).branch_at(snapshot)

    def restore(self, latest: str | None) -> None:
        """Put the worktree back to the snapshot *latest*, or to how it was before the first
        step.
        """
        record = self._record()
        with on_disk(self.tree):
            self._snapshots(record).restore(latest or record.first)
            self._complete()

    def current_branch(self) -> str | None:
        """Return the branch that the worktree is on, whatever an agent did to its file ``.git``."""
        return self._snapshots(self._record()).current_branch()

    def has_commit(self, name: str) -> bool:
        """Return whether *name* is the full id of a commit in the repository."""
        return self._snapshots(self._record()).has_commit(name)

    def made_commit(self, commit: str) -> bool:
        """Return whether a commit is on the worktree's branch and was not there before the
        thread.
        """
        return self._snapshots(self._record()).is_ahead(commit, self.base)

    def changed_paths(self, latest: str | None) -> frozenset[str]:
        """Return the paths that were changed since the thread began, or since the snapshot
        *latest*.
        """
        record = self._record()
        with on_disk(self.tree):
            # only the snapshots hold the files of submodules
            began = record.first if self.submodules else self.base
            return self._snapshots(record).changed_paths((began, latest or record.first))

    def changed_in_submodules(self, latest: str | None) -> tuple[str, ...]:
        """Return the paths in submodules that were changed since the snapshot *latest*; no commit
        of the branch can hold them.
        """
        if not self.submodules:
            return ()
        record = self._record()
        with on_disk(self.tree):
            changed = self._snapshots(record).changed_paths((latest or record.first,))
        inside = tuple(f"{name}/" for name in self.submodules)
        return tuple(sorted(path for path in changed if path.startswith(inside)))

    def untracked(self) -> tuple[str, ...]:
        """Return the paths of all files that git does not track, ignored ones included."""
        return self._snapshots(self._record()).untracked()

    def drop(self) -> None:
        """Remove worktree and branch; snapshots and private files stay. The caller holds the
        lock.
        """
        git = self._git()
        self._drop_tree(git)
        git.run("branch", "--delete", "--force", self.branch)

    def for_children(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return *environment* with the paths of linked directories moved into the worktree."""
        return translated(dict(environment), self.links, self.repository, self.tree)

    def remove(self) -> str | None:
        """Remove worktree, private files and ref, and the branch unless it holds commits that
        nothing else holds.

        Returns:
            The branch, when it was kept.
        """
        kept = None
        git = self._git()
        # 128: it is no repository any more
        if (
            self.carried is None
            and self.repository.is_dir()
            and git.run("rev-parse", "--git-dir", accept=(0, 128))
        ):
            with self.locked():
                self._drop_tree(git)
                git.run("update-ref", "-d", self.ref)
                kept = self._drop_branch(git)
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        return kept

    def _drop_tree(self, git: Git) -> None:
        """Remove the files first: git then forgets the worktree in whatever state a crash or an
        agent left it (128: it knows none).
        """
        shutil.rmtree(self.tree, ignore_errors=True)
        git.run("worktree", "remove", "--force", "--force", str(self.tree), accept=(0, 128))

    def _drop_branch(self, git: Git) -> str | None:
        ref = f"refs/heads/{self.branch}"
        if not git.run("rev-parse", "--quiet", "--verify", ref, accept=(0, 1)).strip():
            return None
        elsewhere = (
            "--not",
            self.base,
            f"--exclude={self.branch}",
            "--branches",
            "--remotes",
            "--tags",
        )
        try:
            if git.run("rev-list", "--max-count=1", ref, *elsewhere).strip():
                return self.branch
            git.run("branch", "--delete", "--force", self.branch)
        # it is checked out somewhere, or its base is gone: a branch too many is better than one too
        # few
        except GitError:
            return self.branch
        return None

    def _complete(self) -> None:
        """Bring back what no snapshot holds: the links, and a directory without files in which the
        person started.
        """
        make_links(self.links, self.repository, self.tree)
        self.directory.mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        """Return whether the worktree is whole."""
        return self._read_record() is not None and (self.tree / ".git").exists()

    def _make(self, latest: str | None, *, now_ms: int) -> None:
        if not self.repository.is_dir():
            raise WorkspaceError(
                f"the repository {self.repository} is gone", remedy="bring it back"
            )
        git = self._git()
        self._refuse_branch_in_use(git)
        self._drop_tree(git)
        self._record_path.unlink(missing_ok=True)
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        start = latest or self.base
        checkout = ("--no-checkout",) if latest else ()
        git.run(
            "worktree",
            "add",
            "--quiet",
            "--force",
            "--no-track",
            *checkout,
            "-B",
            self.branch,
            str(self.tree),
            self._commit_at(git, start),
        )
        inside = Git(directory=self.tree, environment=self.environment)
        common = Path(inside.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
        admin = Path(inside.line("rev-parse", "--path-format=absolute", "--git-dir"))
        copy_submodules(self.submodules, self.repository, self.tree)
        record = WorktreeRecord(common=common, admin=admin, first="")
        snapshots = self._snapshots(record)
        snapshots.create(converted=latest is None and changes_bytes(inside))
        if latest:
            snapshots.restore(latest)
        first = snapshots.take(self._message(0), previous=latest, now_ms=now_ms)
        content = {"common": str(common), "admin": str(admin), "first": first}
        half = self._record_path.with_suffix(".half")
        half.write_text(json.dumps(content), "utf-8")
        half.replace(self._record_path)  # crash before this: the worktree is made anew

    def _commit_at(self, git: Git, start: str) -> str:
        """Return the commit under a snapshot, its first parent; ``restore`` then puts HEAD and
        branch exactly.
        """
        return (
            start
            if start == self.base
            else git.line("rev-parse", "--verify", f"{start}^1^{{commit}}")
        )

    def _refuse_branch_in_use(self, git: Git) -> None:
        for entry in (
            git.run("worktree", "list", "--porcelain")
            .decode("utf-8", "surrogateescape")
            .split("\n\n")
        ):
            lines = entry.strip().split("\n")
            where = lines[0].removeprefix("worktree ")
            if (
                f"branch refs/heads/{self.branch}" in lines
                and Path(where) != self.tree
                and Path(where).exists()
            ):
                raise WorkspaceError(
                    f"the branch {self.branch} is checked out in {where}",
                    remedy="switch to another one there",
                )

    def _message(self, seq: int) -> str:
        return f"snapshot of thread {self.thread_id} after step {seq}"

    def _git(self) -> Git:
        return Git(directory=self.repository, environment=self.environment)

    def _snapshots(self, record: WorktreeRecord) -> Snapshots:
        return Snapshots(
            tree=self.tree,
            common=record.common,
            admin=record.admin,
            private=self.scratch / "snapshots.git",
            ref=self.ref,
            branch=f"refs/heads/{self.branch}",
            links=self.links,
            environment=self.environment,
        )

    @property
    def _record_path(self) -> Path:
        return self.scratch / "worktree.json"

    def _read_record(self) -> WorktreeRecord | None:
        try:
            recorded = json.loads(self._record_path.read_bytes())
            return WorktreeRecord(
                common=Path(recorded["common"]),
                admin=Path(recorded["admin"]),
                first=recorded["first"],
            )
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def _record(self) -> WorktreeRecord:
        record = self._read_record()
        if record is None:
            raise WorkspaceError(
                f"the worktree of thread {self.thread_id} is not there; resume makes it anew"
            )
        return record

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock on worktrees, which are added and removed one after the other;
        git's own locks do the rest.
        """
        self.tree.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(
            self.tree.parent / ".worktrees.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _carried(
    recorded: Mapping[str, object],
    store: Store,
    thread_id: ThreadId,
    environment: Mapping[str, str],
) -> CarriedRepository | None:
    """Return the repository of a thread whose files are carried; None for another one."""
    first = recorded.get(PACK_KEY)
    if not isinstance(first, str):
        return None
    from uncaged_engine.services.packs import pack_blobs  # which a local thread does without

    return CarriedRepository(
        directory=store.private(thread_id) / "repository.git",
        base=str(recorded["base"]),
        first=first,
        blobs=pack_blobs(store),
        environment=environment,
    )


def last_snapshot(steps: Sequence[Mapping[str, object]]) -> str | None:
    """Return the newest snapshot among a thread's finished steps."""
    return next(
        (found for step in reversed(steps) if (found := snapshot_of(step)) is not None), None
    )


def snapshot_of(step: Mapping[str, object]) -> str | None:
    """Return the commit of the snapshot that a step's record names; a failed role step has it in
    its error.
    """
    error = step.get("error")
    found = step.get("snapshot") or (error.get("snapshot") if isinstance(error, Mapping) else None)
    return found if isinstance(found, str) else None
