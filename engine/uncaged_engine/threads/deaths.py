"""Notifications about threads whose worker died, by whichever process sees them first.

The journal has a note of each, under its lock and flushed, before it is sent; a thread that has one
is passed over until it goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.storage.store import Store

from ..door.notifications import Notification
from ..journal import lines
from ..journal.file import JournalFile
from ..notify.delivery import deliver
from ..settings.config import Config, NotifySettings
from ..state.observe import ThreadSummary, facts_of, view
from ..state.states import status
from .resuming import due_ms

DEATHS = frozenset(("interrupted", "unknown"))
OLDEST_MS = 7 * 24 * 60 * 60 * 1000
"""Threads that died before that are passed over: the first look at an old store finds many."""
TOTAL_S = 30.0
"""After this time the rest is left to the next look."""
TAIL_BYTES = 4 << 10
STARTING_MS = 60_000
"""The time that a worker may take to lock a journal after it was asked to."""
TAKEN_UP = frozenset(("answer", "resume"))
"""Lines after which a worker is asked to take a thread up, as after the start record."""


def notify_deaths(
    store: Store,
    config: Config,
    settings: NotifySettings,
    threads: Iterable[ThreadSummary],
    *,
    environment: Mapping[str, str],
    clock_ms: Callable[[], int],
) -> list[str]:
    """Notify a person of interrupted and unknown threads, each once; return a sentence for each
    thread that cannot be read or whose notification was not delivered.

    Args:
        threads: with their present states. environment: see `notify.delivery`.
    """
    problems: list[str] = []
    deadline = time.monotonic() + TOTAL_S
    for thread in threads:
        if thread.status not in DEATHS or thread.status not in settings.events:
            continue
        age_ms = clock_ms() - thread.updated_ms
        if age_ms > OLDEST_MS:
            continue
        try:
            if _is_passed_over(store, thread, age_ms):
                continue
            if time.monotonic() > deadline:
                break
            notification = _note(store, thread, clock_ms)
            # crash here: a death is noted, its notification not sent; it never is
            if notification is not None:
                deliver(notification, settings, config, environment)
        except (UncagedError, OSError) as exc:
            problems.append(f"thread {thread.thread_id}: {exc}")
    return problems


def _is_passed_over(store: Store, thread: ThreadSummary, age_ms: int) -> bool:
    """Whether the journal has a note of this status, or a worker may be taking it up, or it is not
    dead: one that never ran here (a stranger's, or another store's), a child, which its parent
    resumes, or one that sleeps, which `due` resumes. Its lock is not taken, which the worker may
    want.
    """
    path = store.data_path(thread.hash, thread.thread_id)
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            last = file.read().splitlines(keepends=True)[-2:]
    except OSError:
        return True  # archived or removed
    if thread.status in map(lines.notified_in, last):
        return True
    try:
        found = view(store, thread.hash, thread.thread_id, path)
    except NotFoundError:
        return True
    is_untouched = not found.records or found.records[-1].get("control") in TAKEN_UP
    if found.unbound or found.copied or (is_untouched and age_ms < STARTING_MS):
        return True
    return thread.status == "interrupted" and (
        found.start.get("parent") is not None or due_ms(found.records) is not None
    )


def _note(store: Store, thread: ThreadSummary, clock_ms: Callable[[], int]) -> Notification | None:
    """Write the note of a thread's death; None if it has one, or its status changed."""
    journal = JournalFile.open(store, thread.hash, thread.thread_id)
    try:
        history = journal.history
        state = status(facts_of(history, store, thread.hash, journal.blobs), locked=False)
        if state != thread.status or history.notified == state:
            return None  # a worker, or another process, was quicker
        parent = history.start.get("parent")
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
