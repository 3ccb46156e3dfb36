"""Fresh workspaces for proofs: the files that a role step found, in a repository of their own, and
how they differ afterwards from those that the step left.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.paths import expanded
from uncaged_bundles.records import dataclass
from uncaged_engine.services.git import Git, GitError, WorkspaceError

__all__ = ["FreshWorkspace", "StepFiles", "files_of"]

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_ARCHIVE_BYTES = 64 << 20
_GZIP = b"\x1f\x8b"
_WORDS = {
    "A": "was not made",
    "D": "is there and was not",
    "M": "has another content",
    "T": "has another type",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFiles:
    """Files of a role step. before, after: commits in the repository; after is None if the step's
    record names none. subdirectory: where the agent worked, "" for the top.
    """

    repository: Path
    subdirectory: str
    before: str
    after: str | None


def files_of(
    start: Mapping[str, Any], records: Sequence[Mapping[str, Any]], seq: int
) -> StepFiles | None:
    """Return the files of a role step; None if its thread has no workspace.

    Raises:
        DamagedError: a record, perhaps a stranger's, names something else than commits and a
            directory of the workspace.
    """
    workspace = start.get("workspace")
    if not isinstance(workspace, Mapping):
        return None
    before, after = str(workspace["base"]), None
    for record in records:
        error = record.get("error")
        holder = record if "snapshot" in record else error if isinstance(error, Mapping) else {}
        snapshot = holder.get("snapshot")
        if not isinstance(snapshot, str):
            continue
        if int(record.get("seq", 0)) < seq:
            before = snapshot
        elif int(record.get("seq", 0)) == seq:
            after = snapshot
    subdirectory = str(workspace.get("subdirectory", ""))
    inside = PurePosixPath(subdirectory)
    if inside.is_absolute() or ".." in inside.parts:
        raise DamagedError(f"the workspace's directory {subdirectory!r} is outside of it")
    for commit in filter(None, (before, after)):
        if _COMMIT.fullmatch(commit) is None:
            raise DamagedError(f"{commit!r} is no commit of a workspace")
    return StepFiles(
        repository=Path(str(workspace["repository"])),
        subdirectory=subdirectory,
        before=before,
        after=after,
    )


def members_of(data: bytes) -> Sequence[tuple[str, bytes]] | None:
    """Return names and contents of an archive's members in order of their names; None if it is none
    that can be read, or has more than 64 MiB. A file that is only compressed has one member.
    """
    if len(data) > _MAX_ARCHIVE_BYTES:
        return None
    try:
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as stream:
                inner = stream.read(_MAX_ARCHIVE_BYTES + 1)
            if len(inner) > _MAX_ARCHIVE_BYTES:
                return None
            return sorted(_tar_members(inner)) if _is_tar(inner) else [("", inner)]
        if zipfile.is_zipfile(io.BytesIO(data)):
            return sorted(_zip_members(data))
        return sorted(_tar_members(data)) if _is_tar(data) else None
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        return None


def _is_tar(data: bytes) -> bool:
    return tarfile.is_tarfile(io.BytesIO(data))


def _zip_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_size(sum(one.file_size for one in members))
        for one in members:
            yield one.filename, archive.read(one)


def _tar_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        members = archive.getmembers()
        _check_size(sum(one.size for one in members))
        for one in members:
            stream = archive.extractfile(one) if one.isreg() else None
            content = one.linkname.encode() if stream is None else stream.read()
            yield f"{one.type!r}{one.name}", content


def _check_size(size: int) -> None:
    if size > _MAX_ARCHIVE_BYTES:
        raise ValueError(f"the members have {size:,} bytes")


class FreshWorkspace:
    """A fresh workspace. directory: where a script starts."""

    def __init__(self, top: Path, files: StepFiles | None, environment: Mapping[str, str]) -> None:
        self.top = top
        self._files = files
        self._environment = environment
        self.directory = top / files.subdirectory if files is not None else top

    @classmethod
    @contextmanager
    def fresh(
        cls,
        files: StepFiles | None,
        environment: Mapping[str, str],
        repository: Path | None = None,
    ) -> Iterator[FreshWorkspace]:
        """Yield a workspace with the files that the step found, or an empty one, and remove it.

        Args:
            repository: has the commits; None: that in which the thread was started.
        Raises:
            NotFoundError: the repository or the commit is gone.
        """
        top = Path(tempfile.mkdtemp(prefix="uncaged-proof-"))
        try:
            top.chmod(0o755)
            workspace = cls(top, files, environment)
            if files is not None:
                try:
                    workspace._fill(files, repository or files.repository)
                except (GitError, WorkspaceError) as exc:
                    raise NotFoundError(
                        f"the files that the step found are gone from {files.repository}: {exc}"
                    ) from exc
            yield workspace
        finally:
            shutil.rmtree(top, ignore_errors=True)

    def holds(self, path: str) -> bool:
        """Tell whether a path that a flow gets as a parameter is inside, links followed."""
        try:
            found = expanded(path, self._environment, self.directory)
            return found.resolve().is_relative_to(self.top.resolve())
        except (ValueError, OSError, RuntimeError):
            return False

    def differences(self) -> list[str]:
        """Return how the files differ from those that the step left, one sentence for each file."""
        files = self._files
        if files is None or files.after is None:
            return []
        own = self._git(self.top)
        own.run("add", "--all")
        tree = own.line("write-tree")
        listing = own.run(
            "diff-tree", "-r", "-z", "--name-status", "--no-renames", tree, files.after
        ).decode("utf-8", "replace")
        parts = listing.split("\0")
        return [
            f"the file {path} {_WORDS.get(kind, 'differs')}"
            for kind, path in zip(parts[::2], parts[1::2], strict=False)
            if kind != "M" or not self._is_same_archive(own, tree, files.after, path)
        ]

    def _is_same_archive(self, git: Git, tree: str, after: str, path: str) -> bool:
        """Tell whether two archives have the same members; their times and order may differ."""
        one, other = (
            members_of(git.run("cat-file", "blob", f"{name}:{path}")) for name in (tree, after)
        )
        return one is not None and one == other

    def _fill(self, files: StepFiles, repository: Path) -> None:
        """Copy the objects of both commits, so that nothing is shared with the repository."""
        source, own = self._git(repository), self._git(self.top)
        own.run("init", "--quiet")
        commits = "\n".join(filter(None, (files.before, files.after))).encode() + b"\n"
        packed = source.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=commits)
        own.run("index-pack", "--stdin", stdin=packed)
        own.run("update-ref", "--no-deref", "HEAD", files.before)
        own.run("reset", "--hard", "--quiet")

    def _git(self, directory: Path) -> Git:
        return Git(directory=directory, environment=self._environment)
