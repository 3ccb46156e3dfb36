"""Removal of a thread with its journal, debug log, torn tails, worktree, refs and empty branch.

A child thread whose parent may still go on is kept: without its journal the parent would start it
again. A removed child leaves a marker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, is_thread_id
from uncaged_bundles.storage.files import sync_directory
from uncaged_bundles.storage.store import Store

from ..journal import archive, lines, lock
from ..journal.blobs import Blobs
from ..journal.codec import decode
from ..journal.origin import path_beside
from ..journal.pins import pin_of
from ..journal.recover import History, recover
from ..state import states
from ..state.children import OpenEffect
from ..state.index import Stamp, stamp_of
from ..state.observe import summarise, view
from .preparing import forget
from .steering import end_leftovers


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Parent of a thread. parent: None if a person started it; depth is 0 then. known: False if its
    start cannot be read. line: its start record; empty if imported or unreadable.
    """

    parent: ThreadId | None = None
    depth: int = 0
    known: bool = True
    line: bytes = b""


def descent_of(path: Path) -> Descent:
    """Read the parent from a journal's start record; an imported thread has none in this store.

    Raises:
        NotFoundError: the thread was removed.
    """
    if path_beside(path).exists():
        return Descent()
    try:
        line = archive.first_line(path)
        record = decode(line[:-1])
    except NotFoundError:
        raise
    except (UncagedError, OSError, ValueError):
        return Descent(known=False)
    parent = record.get("parent") if isinstance(record, dict) and "forkFrom" not in record else None
    if not isinstance(parent, Mapping) or not is_thread_id(str(parent.get("threadId"))):
        # a fork of a child is no child: its id is not the derived one
        return Descent(known=isinstance(record, dict), line=line)
    return Descent(
        parent=ThreadId(str(parent["threadId"])), depth=int(parent.get("depth", 1)), line=line
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Thread that a command which removes many has read. That command flushes the directory, once.

    stamp: of the file in which the state was read; None: the state has to be read again. descent:
    from its start record. files: all of them, the journal included.
    """

    stamp: Stamp | None
    descent: Descent
    files: Sequence[Path]


def need_of_parent(store: Store, descent: Descent) -> str | None:
    """Return why a thread's parent still needs it, with the next step; None if it does not."""
    path = None if descent.parent is None else store.journal_of(descent.parent)
    if descent.parent is None or path is None:
        return None
    parent = summarise(store, BundleHash(path.parent.name), descent.parent, path)
    if not states.may_go_on(parent.status):
        return None
    return (
        f"its parent {parent.thread_id} ({parent.name}) is {parent.status} and would start it again; "
        f"{states.NEXT_STEP[parent.status]}, or `thread rm {parent.thread_id}` first"
    )


def parents_first(
    threads: Iterable[tuple[BundleHash, ThreadId, Path]],
) -> list[tuple[BundleHash, ThreadId, Path]]:
    """Return the same threads sorted by depth: parents before their children."""
    return sorted(threads, key=lambda place: descent_of(place[2]).depth)


def children_of(store: Store, history: History, blobs: Blobs) -> Iterator[ThreadId]:
    """Yield the ids of the children of an imported thread's open effect. They may have run
    elsewhere: those that the store does not hold get a marker of removal.
    """
    pending = history.pending
    if pending is None:
        return
    intent = decode(blobs.expand(pending.line)[:-1])
    effect = intent.get("intent") if isinstance(intent, dict) else None
    if not isinstance(effect, dict) or len(effect) != 1:
        return
    [(kind, body)] = effect.items()
    done = {lines.part_of(line) for line in pending.subs}
    thread = ThreadId(str(history.start["threadId"]))
    place = OpenEffect(
        store=store, thread=thread, seq=pending.seq, intended_ms=pending.intended_ms, done=done
    )
    yield from place.children(str(kind), body)


def files_by_thread(directory: Path) -> dict[str, list[Path]]:
    """Return all files of each thread in a directory of logs, with leftovers of crashes, without
    markers.
    """
    found: dict[str, list[Path]] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            thread, _, ending = entry.name.removeprefix(".").partition(".")
            if ending != "removed" and is_thread_id(thread):
                found.setdefault(thread, []).append(directory / entry.name)
    return found


def remove(
    store: Store,
    bundle: BundleHash,
    thread: ThreadId,
    path: Path,
    *,
    among: Container[str] | None = None,
    found: Candidate | None = None,
) -> None:
    """Delete a thread whose lock is free.

    Args:
        among: refuse a thread in another state; checked under the lock.
        found: the caller's reading of the thread; a file with the same stamp is not read again.
    Raises:
        RefusedError: another process took the lock meanwhile, it is in another state by now, its
            parent needs it, or it is pinned.
    """
    with lock.holding(path) as journal:
        if journal is None:
            raise RefusedError(
                f"thread {thread} was taken up, archived or removed just now; look at it again"
            )
        is_same = found is not None and stamp_of(os.fstat(journal)) == found.stamp
        if (
            among is not None
            and not is_same
            and summarise(store, bundle, thread, path).status not in among
        ):
            raise RefusedError(f"thread {thread} was taken up just now; look at it again")
        descent = found.descent if found is not None and is_same else descent_of(path)
        if (need := need_of_parent(store, descent)) is not None:
            raise RefusedError(f"thread {thread} is kept: {need}")
        if pin_of(path, thread).exists():
            raise RefusedError(
                f"thread {thread} is pinned; `thread pin --off {thread}` releases it"
            )
        end_leftovers(store, thread)
        _forget(store, bundle, thread, path, descent.line)
        for part in files_by_thread(path.parent).get(thread, []) if found is None else found.files:
            if part != path:
                part.unlink(missing_ok=True)
        if descent.parent is not None or not descent.known:
            store.mark_removed(bundle, thread)
        # crash here: the marker is there, and so is the journal, which counts
        path.unlink()  # last: an outdated archive beside it would become the thread
        if found is None:
            sync_directory(path.parent)


def _forget(store: Store, bundle: BundleHash, thread: ThreadId, path: Path, line: bytes) -> None:
    """Call the preparations to undo what they did for the thread; they get a start record (*line*)
    whose chain holds.
    """
    try:
        if line:
            start = recover(line, bundle, thread).start
        elif path_beside(path).exists():
            start = view(store, bundle, thread, path).start
        else:
            return
    except UncagedError:
        return  # an unreadable start names nothing
    forget(store, thread, start, os.environ)
    if (private := store.private(thread)).exists():
        shutil.rmtree(private, ignore_errors=True)
