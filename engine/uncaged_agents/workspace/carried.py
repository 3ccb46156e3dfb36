"""Repository of a thread whose files travel through its store: bare, in the thread's private
directory, made of packs that the store keeps as blobs.

The start record names the pack of the base commit, with its files and without its history. Each
step that left a snapshot names the pack of the objects that it added, so that journal and blobs
suffice to make the worktree on any machine.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from uncaged_bundles.errors import DamagedError, RefusedError, UsageError
from uncaged_engine.services.blobs import Blobs
from uncaged_engine.services.git import Git, GitError, WorkspaceError, on_disk
from uncaged_engine.services.journal import COMMIT, PACK_KEY

MAX_PACK_BYTES = 256 << 20
"""What a blob of a shared store may have."""
_HASH_OF_SHA256 = 64
_OLD_MISTAKES = ("badEmail", "badTimezone", "missingEmail", "zeroPaddedFilemode")
"""Faults of objects that old programs wrote, and that do no harm."""
_READ = "packs"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPack:
    """Pack of a finished step. commit: its snapshot, which the pack holds."""

    commit: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedRepository:
    """Bare repository of one thread. first: the pack of its base commit."""

    directory: Path
    base: str
    first: str
    blobs: Blobs
    environment: Mapping[str, str]

    def bring(self, packs: Sequence[StepPack]) -> None:
        """Make the repository unless it exists, and read those of *packs* that it lacks.

        Raises:
            DamagedError: a pack is missing, is none, or does not hold its commit.
            WorkspaceError: git or the disk cannot do it.
        """
        self.directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with on_disk(self.directory), self._locked():
            known = self._known()
            for pack in (StepPack(commit=self.base, blob=self.first), *packs):
                if pack not in known:
                    self._read(pack, is_new=all(one.blob != pack.blob for one in known))
                    known.add(pack)

    def borrow(self, objects: Path) -> None:
        """Make the repository, unless it exists, on top of another one's objects instead of the
        pack of the base commit.

        Args:
            objects: the directory of a repository that has the base commit.
        Raises: as `bring`.
        """
        self.directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with on_disk(self.directory), self._locked():
            if not self._known():
                self._create()
                (self.directory / "objects/info").mkdir(exist_ok=True)
                (self.directory / "objects/info/alternates").write_text(f"{objects}\n", "utf-8")
                self._note(StepPack(commit=self.base, blob=self.first))

    def put(self, snapshot: str, branch: str | None, known: Sequence[str]) -> str:
        """Keep the objects that a step added as a blob, and return its name.

        Args:
            snapshot, branch: commits that another machine needs. known: commits that it has.
        Raises:
            WorkspaceError: they are too large.
        """
        wanted = [snapshot, *(() if branch is None else (branch,))]
        lines = [*wanted, *(f"^{commit}" for commit in (self.base, *known))]
        data = _pack(self._git(), lines)
        if data is None:
            raise WorkspaceError(
                f"the files that this step added have more than {MAX_PACK_BYTES >> 20} MiB packed, which a"
                " shared store does not take",
                remedy="have git ignore those that need not be kept",
            )
        name = self.blobs.put(data)
        with self._locked():
            self._note(StepPack(commit=snapshot, blob=name))
        return name

    def _read(self, pack: StepPack, *, is_new: bool) -> None:
        """Read a pack unless an earlier step named the same, and look for its commit."""
        data = self.blobs.get(pack.blob) if is_new else b""
        if pack.commit == self.base and pack.blob == self.first:
            self._create()
        git = self._git()
        try:
            if is_new:
                git.run("index-pack", strict(), "--stdin", stdin=data)
            git.run("cat-file", "-e", f"{pack.commit}^{{commit}}")
        except GitError as exc:
            if "No space left" in exc.words or "quota" in exc.words:
                raise
            raise DamagedError(
                f"blob {pack.blob} holds no usable files of commit {pack.commit}: {exc.words[:500]}"
            ) from exc
        self._note(pack)

    def _create(self) -> None:
        if not COMMIT.fullmatch(self.base):
            raise DamagedError(f"{self.base[:100]!r} is no name of a commit")
        shutil.rmtree(self.directory, ignore_errors=True)
        form = "sha256" if len(self.base) == _HASH_OF_SHA256 else "sha1"
        above = Git(directory=self.directory.parent, environment=self.environment)
        # without a template there are no hooks
        above.run(
            *("init", "--quiet", "--bare", "--template=", "--initial-branch=none"),
            *(f"--object-format={form}", str(self.directory)),
        )
        (self.directory / "shallow").write_text(f"{self.base}\n", "utf-8")

    def _known(self) -> set[StepPack]:
        """Return the packs that were read."""
        try:
            words = (self.directory / _READ).read_text("utf-8").split()
        except FileNotFoundError:
            return set()
        return {
            StepPack(commit=commit, blob=blob)
            for commit, blob in zip(words[::2], words[1::2], strict=False)
        }

    def _note(self, pack: StepPack) -> None:
        with (self.directory / _READ).open("a", encoding="utf-8") as file:
            file.write(f"{pack.commit} {pack.blob}\n")

    def _git(self) -> Git:
        return Git(
            directory=self.directory,
            environment=self.environment,
            variables={"GIT_DIR": str(self.directory)},
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the repository's lock: parts of a step may begin at the same time."""
        path = self.directory.with_suffix(".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def carry(
    workspace: Mapping[str, object],
    blobs: Blobs,
    *,
    links: Sequence[str],
    environment: Mapping[str, str],
) -> dict[str, object]:
    """Return the ``workspace`` of a thread that any machine may drive: what `inspect` found, with
    the pack of the base commit. The ignored directories that would be linked stay behind.

    Args:
        links: those that the person named.
    Raises:
        UsageError: a person named one. RefusedError: there are submodules, or it is too large.
    """
    if links:
        raise UsageError(
            f"--link {links[0]}: ignored files are not carried to the workers of a shared store; run it without --store"
        )
    top, base = Path(str(workspace["repository"])), str(workspace["base"])
    submodules = cast("Sequence[str]", workspace.get("submodules", ()))
    filled = [name for name in submodules if _has_files(top / name)]
    if filled:
        raise RefusedError(
            f"{top} has submodules ({', '.join(filled)}), whose files are not carried to the workers of a shared"
            " store; run it without --store"
        )
    git = Git(directory=top, environment=environment)
    # without a search for new deltas: the same objects give the same blob, and at once
    data = _pack(git, (f"--shallow {base}", base), "--window=0")
    if data is None:
        raise RefusedError(
            f"the files of commit {base} in {top} have more than {MAX_PACK_BYTES >> 20} MiB packed, which a"
            " shared store does not take; run it without --store"
        )
    left = workspace["links"]
    return {
        **workspace,
        "links": [],
        **({"leftBehind": left} if left else {}),
        PACK_KEY: blobs.put(data),
    }


def packs_of(steps: Sequence[Mapping[str, object]]) -> list[StepPack]:
    """Return the packs that the finished steps among records name, in order; a failed step has its
    in its error.
    """
    found = []
    for step in steps:
        if "sub" in step:
            continue
        error = step.get("error")
        fields = error if isinstance(error, Mapping) and PACK_KEY in error else step
        commit, blob = fields.get("snapshot"), fields.get(PACK_KEY)
        if isinstance(commit, str) and isinstance(blob, str) and COMMIT.fullmatch(commit):
            found.append(StepPack(commit=commit, blob=blob))
    return found


def strict() -> str:
    """Return git's option to refuse objects that are malformed or lack others."""
    return "--strict=" + ",".join(f"{name}=ignore" for name in _OLD_MISTAKES)


def _pack(git: Git, lines: Sequence[str], *options: str) -> bytes | None:
    """Return a pack of what *lines* name for git; None if it is too large."""
    return git.bounded(
        *("pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset", *options),
        stdin="".join(f"{line}\n" for line in lines).encode(),
        most_bytes=MAX_PACK_BYTES,
    )


def _has_files(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
