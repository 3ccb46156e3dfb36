"""Pause and kill of a thread: by its worker or, without one, by a line that the caller writes under
the journal's lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store

from ..journal import lines
from ..journal.file import JournalFile
from ..journal.journal import Journal, JournalBusy
from ..state import states
from ..state.observe import ThreadSummary, facts_of, summarise
from ..worker import client

SteeringEvent = Literal["pause", "kill"]
TIMEOUT_S = 10.0
PAUSE_S = 0.02


def steer(
    store: Store,
    text: str,
    event: SteeringEvent,
    clock_ms: Callable[[], int],
) -> ThreadId:
    """Apply *event* to a thread; it is on disk when this returns.

    Raises:
        RefusedError: the thread's state forbids it.
    """
    bundle, thread, path = store.locate_thread(text)
    require(summarise(store, bundle, thread, path), event)
    journal = _ask_or_take(store, bundle, thread, event)
    if journal is None:
        return thread
    try:
        write_event(journal, store, (bundle, thread), event, clock_ms())
        if event == "kill":
            end_leftovers(store, thread)
    finally:
        journal.close()
    return thread


def write_event(
    journal: Journal,
    store: Store,
    place: tuple[BundleHash, ThreadId],
    event: SteeringEvent,
    now_ms: int,
) -> None:
    """Write an event of a thread that no worker drives; it is durable when this returns.

    Raises:
        RefusedError: the thread's state forbids it.
    """
    require_still(journal, store, *place, event)
    pending = journal.history.open
    if event == "kill" and pending is not None:
        message = "killed while no worker ran it"
        journal.append(
            lines.void(pending.seq, "killed", message, {}, now_ms, begun=pending.doubtful)
        )
    journal.append(
        lines.end("killed", {}, now_ms) if event == "kill" else lines.control(event, {}, now_ms)
    )
    journal.flush()


def end_leftovers(store: Store, thread: ThreadId) -> None:
    """End the agents' processes of a thread whose worker died; the caller holds the thread's
    lock.
    """
    from ..processes.leftovers import kill_leftovers  # `run` does without these

    scratch = store.private(thread)
    if scratch.is_dir() and any(scratch.glob("processes-*")):
        kill_leftovers(scratch, thread)


def require(summary: ThreadSummary, event: states.Event) -> None:
    """Raise RefusedError for an event that the thread's state forbids."""
    if not states.allowed(summary.status, event):
        raise RefusedError(states.refusal(summary.status, event, summary.thread_id))


def require_still(
    journal: Journal, store: Store, bundle: BundleHash, thread: ThreadId, event: states.Event
) -> None:
    """Do the same with the state under the journal's lock, which no other process can change."""
    state = states.status(facts_of(journal.history, store, bundle, journal.blobs), locked=False)
    if not states.allowed(state, event):
        raise RefusedError(states.refusal(state, event, thread))


def _ask_or_take(
    store: Store, bundle: BundleHash, thread: ThreadId, event: states.Event
) -> JournalFile | None:
    """Send the event to the thread's worker and return None; without one, lock and return the
    journal.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with suppress(NotFoundError):  # a worker lives, and does not drive this thread
            if (
                client.request(store, bundle, {"op": event, "threadId": thread}, start=False)
                is not None
            ):
                return None
        try:
            return JournalFile.open(store, bundle, thread)
        except JournalBusy:
            if time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_S)  # its worker is just coming, or just leaving
