"""Notifications of a store: threads that wait for a person, and threads that stopped and were not
followed to their end, since the person last cleared the list.

`notifications.jsonl` has the time of the last clearing and a line for each thread that was followed
since; without it the list begins a day ago.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

from ..state.observe import ThreadSummary

FORMAT = 1
FIRST_MS = 24 * 60 * 60 * 1000
"""Age of the threads that the first list has."""
_HEAD_BYTES = 256
LISTED = frozenset(("waiting", "completed", "failed", "limit", "interrupted", "unknown", "corrupt"))
"""States that a person may not know of; `paused` and `killed` are a person's own doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenThreads:
    """What the person has seen: everything up to a time, and these threads up to their times."""

    since_ms: int
    threads: Mapping[str, int]

    def covers(self, thread: ThreadSummary) -> bool:
        """Return whether a thread is as the person saw it. One that waits was not answered, even
        if it was followed.
        """
        seen_ms = 0 if thread.status == "waiting" else self.threads.get(thread.thread_id, 0)
        return thread.updated_ms <= max(self.since_ms, seen_ms)


def notifications(
    threads: Iterable[ThreadSummary], children: Collection[str], seen: SeenThreads
) -> list[ThreadSummary]:
    """Return the threads that a person may not know of, those that changed last first.

    Args:
        children: the threads that other threads started.
    """
    found = [
        one
        for one in threads
        if one.status in LISTED and one.thread_id not in children and not seen.covers(one)
    ]
    return sorted(found, key=lambda one: (one.updated_ms, one.thread_id), reverse=True)


def read_seen(store: Store, now_ms: int) -> SeenThreads:
    """Return what the person has seen; lines that are torn are skipped.

    Raises:
        DamagedError: the file is of a newer version, or its first line cannot be read.
    """
    path = store.seen_path
    data = read_if_there(path)
    if data is None:
        return SeenThreads(since_ms=now_ms - FIRST_MS, threads={})
    first, *lines = data.splitlines() or [b""]
    match _parsed(first):
        case {"format": int(format)} if format > FORMAT:
            raise DamagedError(
                f"{path} has format {format} of a newer version, and this one reads format {FORMAT}; update uncaged-workflow"
            )
        case _:
            since_ms = _since_of(first)
    if since_ms is None:
        raise DamagedError(f"{path}:1 is damaged; remove the file to start a new list")
    threads: dict[str, int] = {}
    for line in lines:
        match _parsed(line):
            case {"threadId": str(thread), "updatedMs": int(updated_ms)}:
                threads[thread] = max(updated_ms, threads.get(thread, 0))
            case _:
                pass
    return SeenThreads(since_ms=since_ms, threads=threads)


def mark_seen(store: Store, thread: ThreadId, updated_ms: int) -> None:
    """Record that a thread was followed up to its last change. Nothing depends on it, so a store
    that cannot be written, or a file that `read_seen` refuses, is no error.
    """
    line = json.dumps({"threadId": thread, "updatedMs": updated_ms})
    path = store.seen_path
    with suppress(OSError, UncagedError):
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            _write(path, updated_ms - FIRST_MS)
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            first = os.pread(handle, _HEAD_BYTES, 0).partition(b"\n")[0]
            if _since_of(first) is not None:
                # a line break goes before it, too, so that a torn line damages no other
                os.write(handle, f"\n{line}\n".encode())
        finally:
            os.close(handle)


def mark_all_seen(store: Store, now_ms: int) -> None:
    """Record that the person has seen everything up to now.

    Raises:
        DamagedError: as `read_seen`; nothing is changed.
    """
    read_seen(store, now_ms)
    _write(store.seen_path, now_ms)


def _write(path: Path, since_ms: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"format": FORMAT, "sinceMs": since_ms}).encode() + b"\n")


def _since_of(first: bytes) -> int | None:
    """Return the time in the first line; None if it is another version's, or damaged."""
    match _parsed(first):
        case {"format": 1, "sinceMs": int(since_ms)}:
            return since_ms
        case _:
            return None


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
