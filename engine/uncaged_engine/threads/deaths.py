"""Notifications about threads whose worker died, by whichever process sees them first.

The journal has a note of each, under its lock and flushed, before it is sent; a thread that has one
is passed over until it goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store

from ..door.notifications import Notification
from ..journal import lines
from ..journal.file import JournalFile
from ..journal.origin import ThreadOrigin
from ..notify.delivery import deliver
from ..settings.config import Config, NotifySettings
from ..state.observe import ThreadSummary, facts_of, parse_records
from ..state.states import status
from .resuming import due_ms

DEATHS = frozenset(("interrupted", "unknown"))
OLDEST_MS = 7 * 24 * 60 * 60 * 1000
"""Threads that died before that are passed over: the first look at an old store finds many."""
TOTAL_S = 30.0
"""After this time the rest is left to the next look."""
TAIL_BYTES = 4 << 10


def notify_deaths(
    store: Store,
    config: Config,
    threads: Iterable[ThreadSummary],
    *,
    environment: Mapping[str, str],
    clock_ms: Callable[[], int],
) -> list[str]:
    """Notify a person of interrupted and unknown threads, each once; return a sentence for each
    notification that was not delivered.

    Args:
        threads: with their present states. environment: see `notify.delivery`.
    """
    settings = config.notify
    if settings is None:
        return []
    problems: list[str] = []
    deadline = time.monotonic() + TOTAL_S
    for thread in threads:
        if thread.status not in DEATHS or thread.status not in settings.events:
            continue
        if clock_ms() - thread.updated_ms > OLDEST_MS or _is_noted(store, thread):
            continue
        if time.monotonic() > deadline:
            break
        try:
            notification = _note(store, settings, thread, clock_ms)
            # crash here: a death is noted, its notification not sent; it never is
            if notification is not None:
                deliver(notification, settings, config, environment)
        except (UncagedError, OSError) as exc:
            problems.append(f"thread {thread.thread_id}: {exc}")
    return problems


def _is_noted(store: Store, thread: ThreadSummary) -> bool:
    """Whether the journal ends with a note of this status, as its tail says; without its lock."""
    try:
        with store.data_path(thread.hash, thread.thread_id).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            last = file.read().splitlines(keepends=True)[-2:]
    except OSError:
        return True  # archived or removed
    return thread.status in map(lines.notified_in, last)


def _note(
    store: Store, settings: NotifySettings, thread: ThreadSummary, clock_ms: Callable[[], int]
) -> Notification | None:
    """Write the note of a thread's death; None if it has one, runs, or waits for its own time."""
    place = store.data_path(thread.hash, thread.thread_id)
    journal = JournalFile.open(store, thread.hash, thread.thread_id)
    try:
        history = journal.history
        state = status(facts_of(history, store, thread.hash, journal.blobs), locked=False)
        if state not in settings.events or state not in DEATHS or history.notified == state:
            return None
        origin = ThreadOrigin.of(place)
        if origin is not None and origin.binding(history) is None:
            return None  # a stranger's thread, which never ran here
        parent = history.start.get("parent")
        if state == "interrupted":
            records = parse_records(journal.read(), journal.blobs)
            if parent is not None or due_ms(records) is not None:
                return None  # its parent resumes it, or `due`
        now_ms = clock_ms()
        note = lines.notified(state, now_ms)
        # the time between its death and now is no running time
        journal.append(lines.with_running_time(note, history.ran_ms), flush=True)
    finally:
        journal.close()
    return Notification(
        event="interrupted" if state == "interrupted" else "unknown",
        subject=thread.thread_id,
        flow=thread.name,
        message=thread.message,
        timestamp_ms=now_ms,
        parent=str(parent["threadId"]) if isinstance(parent, Mapping) else None,
    )
