"""Event stream of a thread: its records as they reach the disk, and its status when it stops.

Only flushed bytes are passed on. Where no worker reports a flush, the reader flushes the journal
itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..journal import archive, durable, lock
from ..journal.blobs import BlobDirectory, Blobs
from ..journal.recover import recover
from ..journal.trouble import Trouble
from ..state.observe import parse_records, summary_of
from ..worker.client import following

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Event of a thread.

    kind record: a journal line without its chain. progress: a report of the effect in flight.
    status: the status at which the thread stopped; the last event.
    """

    kind: Literal["record", "progress", "status"]
    body: Mapping[str, Any]


def follow(store: Store, bundle: BundleHash, thread: ThreadId, path: Path) -> Iterator[Event]:
    """Yield a thread's events from its start record on, then one status event.

    Raises:
        NotFoundError: the thread was removed meanwhile.
    """
    blobs = BlobDirectory(store.blobs)
    plain = archive.plain_of(path)
    shown = 0
    while True:
        # why the worker gave up the thread, where the journal does not show it
        left: Trouble | None = None
        while lock.is_live(plain):
            with following(store, bundle, thread) as events:
                if events is None:
                    # another process holds the lock for a moment, or the worker is just leaving
                    time.sleep(PAUSE_S)
                    continue
                for event in events:
                    if "flushed" in event:
                        records, shown = _records(plain, shown, int(event["flushed"]), blobs)
                        yield from records
                    elif "progress" in event:
                        yield Event(kind="progress", body=event["progress"])
                    elif "message" in event:
                        left = Trouble.of(event)
        found = durable.read(path, reported=shown, known=left)
        history = recover(found.data, bundle, thread)
        for record in parse_records(found.data[shown : history.good_bytes], blobs):
            yield Event(kind="record", body=record)
        shown = max(shown, history.good_bytes)
        if not lock.is_live(plain):  # else another worker took it up meanwhile
            break
    summary = summary_of(
        history, store, bundle, thread, found.data, locked=False, why=found.trouble
    )
    yield Event(
        kind="status",
        body={"status": summary.status, "message": summary.message, "steps": summary.steps},
    )


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


def _records(path: Path, shown: int, flushed: int, blobs: Blobs) -> tuple[list[Event], int]:
    """Return the records between two places of the file."""
    if flushed <= shown:
        return [], shown
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # it was archived or removed before this event was read: the caller reads the rest once
        return [], shown
    try:
        data = os.pread(fd, flushed - shown, shown)
    finally:
        os.close(fd)
    return [Event(kind="record", body=record) for record in parse_records(data, blobs)], flushed
