"""Archiving and pruning of ended threads, by age or by name. Nothing that a live or resumable
thread needs is touched.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, is_bundle_hash
from uncaged_bundles.storage.files import remove_stale_temporaries, sync_directory
from uncaged_bundles.storage.store import Store

from ..journal import archive, lock
from ..journal.blobs import BlobDirectory, named_in
from ..journal.pins import pin_of
from ..state.index import Stamp, stamp_of
from ..state.observe import read_summary, summarise
from . import removal, tails
from .removal import Descent
from .scratch import sweep as sweep_trials

if TYPE_CHECKING:
    from ..api import Engine

ENDED = frozenset(("completed", "failed", "killed"))
"""Without ``limit``: people raise the limit and resume. Such a thread is archived or removed only
by name.
"""

ARCHIVABLE = ENDED | {"limit"}

BATCH = 96
"""Number of journals that are packed with two flushes. Each has two open files meanwhile, and some
systems allow a process 256.
"""

YOUNG_BLOB_S = 3600
"""A blob is written before the line that names it: a young one may belong to a line that is being
written.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Result of `archive`. kept_aside: files with the damaged tails that were cut first. kept: old
    threads whose parents may still go on. problems: why some threads could not be moved.
    """

    threads: tuple[ThreadId, ...]
    saved_bytes: int
    kept_aside: tuple[Path, ...] = ()
    kept: tuple[ThreadId, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Result of `prune`. problems: why some threads could not be removed. kept: old threads whose
    parents may still go on. pinned: old threads that a person pinned.
    """

    threads: tuple[ThreadId, ...]
    freed_bytes: int
    problems: tuple[str, ...] = ()
    kept: tuple[ThreadId, ...] = ()
    pinned: tuple[ThreadId, ...] = ()


def archive_threads(
    engine: Engine,
    threads: Sequence[str],
    *,
    older_than_ms: int | None = None,
    flow: str | None = None,
) -> Archived:
    """Compress journals of ended threads.

    Args:
        threads: ids or prefixes. older_than_ms: all that ended longer ago than this, instead.
            flow: of those, only the threads that were started under this name.
    Raises:
        RefusedError: a named thread has not ended.
    """
    done: dict[ThreadId, int] = {}
    kept_aside: list[Path] = []
    if older_than_ms is None:
        places = [
            _Ended(bundle, thread, path)
            # once each: the second lock of a journal would be refused
            for bundle, thread, path in dict.fromkeys(engine.store.locate_threads(threads))
        ]
    else:
        places = list(_old(engine, older_than_ms, flow))
    for part in (places[at : at + BATCH] for at in range(0, len(places), BATCH)):
        with ExitStack() as locks:
            journals: dict[_Ended, int] = {}
            for one in part:
                try:
                    journal = _take(engine.store, one, kept_aside, locks)
                    if journal is not None:
                        journals[one] = journal
                except (RefusedError, NotFoundError):
                    if older_than_ms is None:
                        raise
                    # another process resumed or removed it
            saved = archive.compress_all([(one.path, fd) for one, fd in journals.items()])
            done.update(zip((one.thread for one in journals), saved, strict=True))
    return Archived(
        threads=tuple(done), saved_bytes=sum(done.values()), kept_aside=tuple(kept_aside)
    )


def _take(store: Store, one: _Ended, kept_aside: list[Path], locks: ExitStack) -> int | None:
    """Lock a journal that is to be packed, until *locks* is closed; return its descriptor, or None
    if it is packed already.

    A damaged tail is cut first; *kept_aside* gets the file with it.

    Raises:
        RefusedError: the thread has not ended, or another process has it. NotFoundError: it was
            removed.
    """
    if archive.is_archived(one.path):
        return None
    may_have_tail = (
        one.seen is None and summarise(store, one.bundle, one.thread, one.path).status in ARCHIVABLE
    )
    if may_have_tail and (kept := tails.cut(store, one.path, one.bundle, one.thread)) is not None:
        kept_aside.append(kept)
    # a worker that resumes it now would write into a file without a name
    journal = locks.enter_context(lock.holding(one.path))
    if journal is None or stamp_of(os.fstat(journal)) != one.seen:
        status = summarise(store, one.bundle, one.thread, one.path).status
        if status not in ARCHIVABLE:
            raise RefusedError(f"thread {one.thread} is {status}: only an ended thread is archived")
    if journal is None:
        raise RefusedError(f"thread {one.thread} is in use by another process; try again")
    return journal


def prune(
    engine: Engine, *, older_than_ms: int, flow: str | None = None, dry_run: bool = False
) -> Pruned:
    """Remove threads that ended longer ago than *older_than_ms*, of one flow or of all, then blobs
    and worktrees that belong to no thread.

    Each directory is listed once, however many threads are in it.
    """
    removing = _Removing(engine.store, dry_run=dry_run)
    removing.remove_all(_old(engine, older_than_ms, flow))
    freed = removing.freed_bytes
    if not dry_run:
        for directory in (
            engine.store.blobs,
            *(
                one
                for one in engine.store.logs.iterdir()
                if is_bundle_hash(one.name) and one.is_dir()
            ),
        ):
            remove_stale_temporaries(directory, time.time() - YOUNG_BLOB_S)
        freed += _sweep_blobs(engine) + _sweep_worktrees(engine)
        sweep_trials(engine.store)
    return Pruned(
        threads=tuple(removing.gone),
        freed_bytes=freed,
        problems=tuple(removing.problems),
        kept=tuple(removing.kept),
        pinned=tuple(removing.pinned),
    )


class _Removing:
    """The removal of many threads in one run of `prune`."""

    def __init__(self, store: Store, *, dry_run: bool) -> None:
        self.gone: dict[ThreadId, None] = {}
        self.kept: list[ThreadId] = []
        self.pinned: list[ThreadId] = []
        self.problems: list[str] = []
        self.freed_bytes = 0
        self._store = store
        self._dry_run = dry_run
        self._files: dict[Path, dict[str, list[Path]]] = {}
        self._needs: dict[ThreadId, str | None] = {}

    def remove_all(self, threads: Iterable[_Ended]) -> None:
        """Remove parents before their children, so that ended parents and children go together."""
        found = []
        for one in threads:
            with suppress(NotFoundError):
                found.append((removal.descent_of(one.path), one))
        for descent, one in sorted(found, key=lambda pair: pair[0].depth):
            if self._is_needed(descent):
                self.kept.append(one.thread)
            else:
                self._remove(one, descent)
        if self.gone and not self._dry_run:
            for directory in self._files:
                sync_directory(directory)

    def _is_needed(self, descent: Descent) -> bool:
        parent = descent.parent
        if parent is None or parent in self.gone:
            return False
        if parent not in self._needs:
            with suppress(NotFoundError):
                self._needs[parent] = removal.need_of_parent(self._store, descent)
        return self._needs.get(parent) is not None

    def _remove(self, one: _Ended, descent: Descent) -> None:
        directory = one.path.parent
        if directory not in self._files:
            self._files[directory] = removal.files_by_thread(directory)
        files = self._files[directory].get(one.thread, [])
        if pin_of(one.path, one.thread) in files:
            self.pinned.append(one.thread)
            return
        size = sum(_size_of_file(part) for part in files)
        if not self._dry_run:
            try:
                removal.remove(
                    self._store,
                    one.bundle,
                    one.thread,
                    one.path,
                    among=ENDED,
                    found=removal.Candidate(stamp=one.seen, descent=descent, files=files),
                )
            except (RefusedError, NotFoundError):
                return  # another process resumed or removed it meanwhile
            except (UncagedError, OSError) as exc:
                # such as a repository that is read-only: no reason to keep the others
                self.problems.append(f"thread {one.thread} stays: {exc}")
                return
        self.gone[one.thread] = None
        self.freed_bytes += size


@dataclass(frozen=True, slots=True)
class _Ended:
    """Ended thread. seen: the stamp of the file in which its end was read; None: it has to be read
    again, or its tail may be damaged.
    """

    bundle: BundleHash
    thread: ThreadId
    path: Path
    seen: Stamp | None = None


def _old(engine: Engine, older_than_ms: int, flow: str | None) -> Iterator[_Ended]:
    now_ms = time.time_ns() // 1_000_000
    for bundle, thread, path in engine.store.find_journals():
        # it was removed since its directory was read
        with suppress(NotFoundError, FileNotFoundError):
            stamp = stamp_of(os.stat(path))  # noqa: PTH116 - a Path costs ten times as much; before the bytes
            summary, is_settled = read_summary(engine.store, bundle, thread, path)
            if flow is not None and summary.name != flow:
                continue
            if summary.status in ENDED and now_ms - summary.updated_ms >= older_than_ms:
                yield _Ended(bundle, thread, Path(path), stamp if is_settled else None)


def _every_thread(engine: Engine) -> set[tuple[ThreadId, Path]]:
    """Return all journals, from two listings: one listing may miss a journal that is archived
    meanwhile.
    """
    return {(thread, path) for _ in range(2) for _, thread, path in engine.store.find_threads()}


def _sweep_blobs(engine: Engine) -> int:
    """Remove blobs that no journal names."""
    named: set[str] = set()
    for _, path in _every_thread(engine):
        try:
            data = archive.contents(path)
        except NotFoundError:
            continue  # it was removed meanwhile
        except (UncagedError, OSError):
            return 0  # a journal that cannot be read may name any of them
        named.update(named_in(data))
    return BlobDirectory(engine.store.blobs).sweep(named, before_s=time.time() - YOUNG_BLOB_S)


def _sweep_worktrees(engine: Engine) -> int:
    """Remove the files in `work` of threads that are gone."""
    # before the threads: what is here now has its thread's journal already
    entries = list(engine.store.work.iterdir())
    alive = {thread for thread, _ in _every_thread(engine)}
    freed = 0
    for entry in entries:
        thread = entry.name.partition(".")[0]
        if thread in alive or entry.name.startswith("."):
            continue
        freed += _size(entry)
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    return freed


def _size(entry: Path) -> int:
    """Return the bytes in a file or directory; files that vanish meanwhile count zero."""
    if not entry.is_dir() or entry.is_symlink():
        return _size_of_file(entry)
    return sum(
        _size_of_file(Path(directory, name))
        for directory, _, names in os.walk(entry, followlinks=False)
        for name in names
    )


def _size_of_file(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
