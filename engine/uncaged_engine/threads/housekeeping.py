"""Archive and prune: ended threads are compressed or removed by age. What a live or resumable thread needs is never touched."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, is_bundle_hash
from uncaged_bundles.storage.files import remove_stale_temporaries
from uncaged_bundles.storage.store import Store

from ..journal import archive, lock
from ..journal.blobs import Blobs
from ..state.observe import ThreadSummary, summarise
from . import removal, tails
from .removal import Descent

if TYPE_CHECKING:
    from ..api import Engine

ENDED = frozenset(("completed", "failed", "killed"))
"""A thread at its limit has ended too, but people go on with those; it is only archived or removed by name."""

YOUNG_BLOB_S = 3600
"""A blob is written before the line that names it: a young one may belong to a thread that is being written now."""

_BLOB_IN_LINE = re.compile(rb'"blob":\{"field":"[^"]*","hash":"([0-9a-f]{32})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """kept_aside: where damaged tails are that were cut first."""

    threads: tuple[ThreadId, ...]
    saved_bytes: int
    kept_aside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """problems: why some threads could not be removed. kept: old ones that stay because their parent may still go on."""

    threads: tuple[ThreadId, ...]
    freed_bytes: int
    problems: tuple[str, ...] = ()
    kept: tuple[ThreadId, ...] = ()


def archive_threads(engine: Engine, threads: Sequence[str], *, older_than_ms: int | None = None) -> Archived:
    """Compress journals of ended threads.

    Args:
        threads: ids or prefixes. older_than_ms: instead, all that ended longer ago than this.
    Raises:
        RefusedError: a named thread has not ended.
    """
    done: dict[ThreadId, int] = {}
    kept_aside: list[Path] = []
    for bundle, thread, path in engine.store.locate_threads(threads) if older_than_ms is None else _old(engine, older_than_ms):
        try:
            saved = _archive(engine.store, bundle, thread, path, kept_aside)
        except (RefusedError, NotFoundError):
            if older_than_ms is None:
                raise
            continue  # another process took it up, or removed it
        if saved is not None:
            done[thread] = saved
    return Archived(threads=tuple(done), saved_bytes=sum(done.values()), kept_aside=tuple(kept_aside))


def _archive(store: Store, bundle: BundleHash, thread: ThreadId, path: Path, kept_aside: list[Path]) -> int | None:
    """How many bytes were saved; None if it is archived already. A damaged tail is not packed: it is cut, and added to *kept_aside*."""
    if archive.is_archived(path):
        return None
    if summarise(store, bundle, thread, path).status in ENDED | {"limit"} and (kept := tails.cut(path, bundle, thread)) is not None:
        kept_aside.append(kept)
    with lock.taken(path) as ours:  # or a thread that is resumed just now would write into a file without a name
        status = summarise(store, bundle, thread, path).status
        if status not in ENDED | {"limit"}:
            raise RefusedError(f"thread {thread} is {status}: only an ended thread is archived")
        if not ours:
            raise RefusedError(f"thread {thread} is in use by another process; try again")
        before = path.stat().st_size
        return before - archive.compress(path).stat().st_size


def prune(engine: Engine, *, older_than_ms: int, dry_run: bool = False) -> Pruned:
    """Remove threads that ended longer ago than *older_than_ms*, then blobs and worktrees that belong to no thread.

    Each directory is listed once, however many threads are in it.
    """
    removing = _Removing(engine.store, dry_run=dry_run)
    removing.remove_all(_old(engine, older_than_ms))
    freed = removing.freed_bytes
    if not dry_run:
        for directory in (engine.store.blobs, *(one for one in engine.store.logs.iterdir() if is_bundle_hash(one.name) and one.is_dir())):
            remove_stale_temporaries(directory, time.time() - YOUNG_BLOB_S)
        freed += _sweep_blobs(engine) + _sweep_worktrees(engine)
    return Pruned(threads=tuple(removing.gone), freed_bytes=freed, problems=tuple(removing.problems), kept=tuple(removing.kept))


class _Removing:
    """The removal of many threads in one run of `prune`."""

    def __init__(self, store: Store, *, dry_run: bool) -> None:
        self.gone: dict[ThreadId, None] = {}
        self.kept: list[ThreadId] = []
        self.problems: list[str] = []
        self.freed_bytes = 0
        self._store = store
        self._dry_run = dry_run
        self._files: dict[Path, dict[str, list[Path]]] = {}
        self._needs: dict[ThreadId, str | None] = {}

    def remove_all(self, threads: Iterable[tuple[BundleHash, ThreadId, Path]]) -> None:
        """Remove parents before their children, so that a family that has ended goes as a whole."""
        found = []
        for place in threads:
            with suppress(NotFoundError):
                found.append((removal.descent_of(place[2]), place))
        for descent, place in sorted(found, key=lambda one: one[0].depth):
            if self._is_needed(descent):
                self.kept.append(place[1])
            else:
                self._remove(*place)

    def _is_needed(self, descent: Descent) -> bool:
        parent = descent.parent
        if parent is None or parent in self.gone:
            return False
        if parent not in self._needs:
            with suppress(NotFoundError):
                self._needs[parent] = removal.need_of_parent(self._store, descent)
        return self._needs.get(parent) is not None

    def _remove(self, bundle: BundleHash, thread: ThreadId, path: Path) -> None:
        if path.parent not in self._files:
            self._files[path.parent] = removal.files_by_thread(path.parent)
        files = self._files[path.parent].get(thread, [])
        size = sum(_size(part) for part in files)
        if not self._dry_run:
            try:
                removal.remove(self._store, bundle, thread, path, among=ENDED, files=files)
            except (RefusedError, NotFoundError):
                return  # another process took it up meanwhile, or removed it
            except (UncagedError, OSError) as exc:  # its repository cannot be written, perhaps: no reason to keep the others
                self.problems.append(f"thread {thread} stays: {exc}")
                return
        self.gone[thread] = None
        self.freed_bytes += size


def _old(engine: Engine, older_than_ms: int) -> Iterable[tuple[BundleHash, ThreadId, Path]]:
    now_ms = time.time_ns() // 1_000_000
    for bundle, thread, path in engine.store.find_threads():
        with suppress(NotFoundError):  # it was removed since its directory was read
            summary: ThreadSummary = summarise(engine.store, bundle, thread, path)
            if summary.status in ENDED and now_ms - summary.updated_ms >= older_than_ms:
                yield bundle, thread, path


def _every_thread(engine: Engine) -> set[tuple[ThreadId, Path]]:
    """All journals, looked for twice: one that is archived while its directory is read may be seen under neither of its names."""
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
        named.update(match.decode() for match in _BLOB_IN_LINE.findall(data))
    return Blobs(engine.store.blobs).sweep(named, before_s=time.time() - YOUNG_BLOB_S)


def _sweep_worktrees(engine: Engine) -> int:
    """Remove what is left in `work` of threads that are gone."""
    entries = list(engine.store.work.iterdir())  # before the threads: what stands here now has its thread's journal already
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
    """The bytes in it; what goes while we look counts for nothing."""
    paths = [entry]
    if entry.is_dir() and not entry.is_symlink():
        paths = [Path(directory) / name for directory, _, names in os.walk(entry, followlinks=False) for name in names]
    total = 0
    for path in paths:
        with suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total
