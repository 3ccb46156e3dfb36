"""Scratch stores: what a trial writes, apart from the threads of a person's store.

Each has a lock file beside its directory, which names a directory outside the store that is removed
with it. The lock ends with its owner, so that the next trial or `prune` removes what a killed one
left.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage.store import DATA_SUFFIX, Store

from ..journal import archive, lock
from ..journal.codec import decode
from .preparing import forget
from .starting import ENTROPY_BYTES, Chance
from .steering import end_leftovers

NAME = ".trials"
LOCK_SUFFIX = ".lock"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScratchStore(Store):
    """Store of a trial: logs, blobs and worktrees of its own, and the rest of a person's store.

    person: that store. scratch: where its own parts are. directory: a fresh directory for scripts,
    outside the store, which is hidden from them.
    """

    person: Store
    scratch: Path
    directory: Path

    @property
    def logs(self) -> Path:
        return self.scratch / "logs"

    @property
    def blobs(self) -> Path:
        return self.scratch / "blobs"

    @property
    def work(self) -> Path:
        return self.scratch / "work"

    @property
    def bundles(self) -> Path:
        return self.person.bundles

    @property
    def registry_path(self) -> Path:
        return self.person.registry_path

    @property
    def documents(self) -> Path:
        return self.person.documents

    @property
    def derived(self) -> Path:
        return self.person.derived

    def has_bundle(self, hash: BundleHash) -> bool:
        return self.person.has_bundle(hash)

    def bundle_source(self, hash: BundleHash) -> bytes:
        return self.person.bundle_source(hash)


@contextmanager
def scratch_store(store: Store, chance: Chance, directory: Path | None) -> Iterator[ScratchStore]:
    """Yield a new scratch store and remove it afterwards; first remove those that others left.

    Args:
        directory: where scripts run; None makes a fresh one, which is removed, too.
    """
    trials = store.work / NAME
    trials.mkdir(mode=0o700, exist_ok=True)
    sweep(store)
    path, fd = _locked_file(trials, chance)
    try:
        fresh = Path(tempfile.mkdtemp(prefix="uncaged-trial-")) if directory is None else None
        # crash here: an empty directory stays in the system's temporary one
        if fresh is not None:
            os.write(fd, os.fsencode(fresh))
        scratch = ScratchStore(
            root=store.root,
            person=store,
            scratch=path.with_suffix(""),
            directory=fresh or directory or Path.cwd(),
        )
        for part in (scratch.logs, scratch.blobs, scratch.work):
            part.mkdir(parents=True, mode=0o700)
        try:
            yield scratch
        finally:
            _remove(scratch, fresh)
            path.unlink(missing_ok=True)
    finally:
        os.close(fd)


def is_driven_in_scratch(store: Store, thread: ThreadId) -> bool:
    """Tell whether a thread is driven in a scratch store below *store*: a worker of a shared store
    keeps its copies there.
    """
    pattern = f"*/logs/*/{thread}{DATA_SUFFIX}"
    return any(lock.is_live(journal) for journal in (store.work / NAME).glob(pattern))


def _locked_file(trials: Path, chance: Chance) -> tuple[Path, int]:
    """Make a lock file and take its lock; return its path and its descriptor."""
    while True:
        name = new_thread_id(chance.clock_ms(), chance.entropy(ENTROPY_BYTES))
        path = trials / f"{name}{LOCK_SUFFIX}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if lock.take(fd) and lock.is_named(fd):
            return path, fd
        os.close(fd)  # a sweep came between


def sweep(store: Store) -> None:
    """Remove the scratch stores whose owner is gone."""
    for path in sorted((store.work / NAME).glob(f"*{LOCK_SUFFIX}")):
        with suppress(OSError), lock.holding(path) as fd:
            if fd is None:
                continue  # it is in use, or was removed meanwhile
            named = os.fsdecode(os.pread(fd, 4096, 0))
            scratch = ScratchStore(
                root=store.root,
                person=store,
                scratch=path.with_suffix(""),
                directory=Path(named or "/"),
            )
            _remove(scratch, Path(named) if named else None)
            path.unlink(missing_ok=True)


def _remove(scratch: ScratchStore, fresh: Path | None) -> None:
    """Remove all that a scratch store has: also what its threads hold outside of it, such as refs
    in a repository, and their agents' processes.
    """
    if scratch.work.is_dir():
        sweep(scratch)  # trials of its own, as of a worker that proves a fix
    for _, thread, path in scratch.find_threads() if scratch.logs.is_dir() else ():
        # what cannot be removed now is a leftover of another program's directory, not of the store
        with suppress(UncagedError, OSError, ValueError):
            start = decode(archive.first_line(path)[:-1])
            end_leftovers(scratch, thread)
            if isinstance(start, dict):
                forget(scratch, thread, start, os.environ)
    shutil.rmtree(scratch.scratch, ignore_errors=True)
    if fresh is not None:
        shutil.rmtree(fresh, ignore_errors=True)
