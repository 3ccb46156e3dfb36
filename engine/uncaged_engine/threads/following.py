"""Event stream of a thread: its records as they reach the disk, and its status when it stops.

Only flushed bytes are passed on. Where no worker reports a flush, the reader flushes the journal
itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..journal import archive, durable, lock
from ..journal.blobs import BlobDirectory, Blobs
from ..journal.recover import recover
from ..journal.trouble import Trouble
from ..state.observe import parse_records, summary_of
from ..worker.client import following

if TYPE_CHECKING:
    from ..door.effects import Cancel

PAUSE_S = 0.02
PART_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Event of a thread.

    kind record: a journal line without its chain. progress: a report of the effect in flight.
    status: the status at which the thread stopped; the last event.
    place: bytes of the journal up to the end of the record, or of the last one before the event.
    """

    kind: Literal["record", "progress", "status"]
    body: Mapping[str, Any]
    place: int = 0


def follow(
    store: Store,
    bundle: BundleHash,
    thread: ThreadId,
    path: Path,
    *,
    after: int | None = 0,
    cancel: Cancel | None = None,
) -> Iterator[Event]:
    """Yield a thread's events from its start record on, then one status event.

    Args:
        after: the place after which records are shown. None: the present one; if the thread runs,
            the first event is then its status ``running`` with that place.
        cancel: ends the stream, without a status event, from another thread of execution.
    Raises:
        NotFoundError: the thread was removed meanwhile. UsageError: *after* is not the end of a
            record.
    """
    blobs = BlobDirectory(store.blobs)
    plain = archive.plain_of(path)
    shown = after
    if shown:
        _require_end(path, shown)
    while True:
        # why the worker gave up the thread, where the journal does not show it
        left: Trouble | None = None
        while lock.is_live(plain) and not (cancel and cancel.requested):
            with following(store, bundle, thread, cancel) as events:
                if events is None:
                    # another process holds the lock for a moment, or the worker is just leaving
                    time.sleep(PAUSE_S)
                    continue
                for event in events:
                    if "flushed" in event:
                        flushed = int(event["flushed"])
                        if shown is None:
                            shown = flushed
                            yield _status("running", "", shown)
                        records = _records(plain, shown, flushed, blobs)
                        yield from records
                        shown = records[-1].place if records else shown
                    elif "progress" in event:
                        yield Event(kind="progress", body=event["progress"], place=shown or 0)
                    elif "message" in event:
                        left = Trouble.of(event)
        if cancel and cancel.requested:
            return
        found = durable.read(path, reported=shown or 0, known=left)
        history = recover(found.data, bundle, thread)
        if shown is None:
            shown = history.good_bytes
        yield from _events(found.data[shown : history.good_bytes], shown, blobs)
        shown = max(shown, history.good_bytes)
        if not lock.is_live(plain):  # else another worker took it up meanwhile
            break
    summary = summary_of(
        history, store, bundle, thread, found.data, locked=False, why=found.trouble
    )
    yield _status(summary.status, summary.message, shown, steps=summary.steps)


def records_between(store: Store, path: Path, after: int, end: int) -> Iterator[Event]:
    """Yield the records between two places of a journal that are known to be flushed, a part of the
    file at a time.

    Raises:
        NotFoundError: it was removed. UsageError: *after* is not the end of a record.
    """
    blobs = BlobDirectory(store.blobs)
    if after:
        _require_end(path, after)
    place = after
    if not archive.plain_of(path).exists():  # unpacked once, not for each part
        yield from _events(archive.contents(path)[after:end], after, blobs)
        return
    while place < end:
        # whole lines only: at least one, however long it is
        data = _read(path, place, min(end, place + PART_BYTES))
        if not data.endswith(b"\n"):
            data = data[: data.rfind(b"\n") + 1] or _read(path, place, end)
        events = list(_events(data, place, blobs))
        if not events:
            return  # the file was cut, or replaced
        yield from events
        place = events[-1].place


def wait_until_left(store: Store, bundle: BundleHash, thread: ThreadId, path: Path) -> None:
    """Wait until no worker drives the thread, without reading its records."""
    plain = archive.plain_of(path)
    while lock.is_live(plain):
        with following(store, bundle, thread) as events:
            if events is None:
                time.sleep(PAUSE_S)  # its worker is just coming, or just leaving
                continue
            for _ in events:
                pass


def _status(status: str, message: str, place: int, **more: object) -> Event:
    return Event(kind="status", body={"status": status, "message": message, **more}, place=place)


def _records(path: Path, shown: int, flushed: int, blobs: Blobs) -> list[Event]:
    """Return the records between two places of the file."""
    if flushed <= shown:
        return []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # it was archived or removed before this event was read: the caller reads the rest once
        return []
    try:
        data = os.pread(fd, flushed - shown, shown)
    finally:
        os.close(fd)
    return list(_events(data, shown, blobs))


def _events(data: bytes, place: int, blobs: Blobs) -> Iterator[Event]:
    """Yield the whole lines of a part of the journal that begins at *place*."""
    for line in data.split(b"\n")[:-1]:
        place += len(line) + 1
        [record] = parse_records(line + b"\n", blobs)
        yield Event(kind="record", body=record, place=place)


def _require_end(path: Path, place: int) -> None:
    if place < 0 or _read(path, place - 1, place) != b"\n":
        raise UsageError(f"place {place} is not the end of a record of this thread")


def _read(path: Path, begin: int, end: int) -> bytes:
    """Return bytes of a journal, plain or packed.

    Raises:
        NotFoundError: there is none.
    """
    try:
        fd = os.open(archive.plain_of(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return archive.contents(path)[begin:end]
    try:
        return os.pread(fd, end - begin, begin)
    finally:
        os.close(fd)
