"""Pauses and kills of a shared store's threads: a row for the thread's worker or, without one, a
line under the thread's fence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store

from ..journal.journal import Journal, JournalBusy
from ..state.observe import summarise
from ..threads.steering import SteeringEvent, require, write_event
from .copies import ThreadCopies
from .journal import left_word

STEER_TIMEOUT_S = 30.0
"""How long a worker may take to carry a pause or a kill out, which it looks for every second."""
BUSY_S = 10.0
"""How long another command, or a worker that leaves a thread, may keep its journal."""
POLL_S = 0.1
_LEFT_BY: Mapping[SteeringEvent, str] = {"pause": "paused", "kill": "killed"}


def steer_shared(
    store: Store,
    copies: ThreadCopies,
    text: str,
    event: SteeringEvent,
    clock_ms: Callable[[], int],
) -> ThreadId:
    """Pause or kill a thread: by its worker or, without one, by a line under its fence."""
    bundle, thread, path = store.locate_thread(text)
    require(summarise(store, bundle, thread, path), event)
    queue, is_asked = copies.queue, False
    give_up_s = time.monotonic() + STEER_TIMEOUT_S
    while time.monotonic() < give_up_s:
        if is_asked and not queue.is_requested(thread):
            return thread  # the worker has carried it out
        with suppress(JournalBusy), copies.owned(bundle, thread) as journal:
            if is_asked:
                if not queue.is_requested(thread):
                    return thread
                queue.withdraw(thread)
                # its worker has written the event, and was about to delete the request
                if left_word(journal, store, bundle) == _LEFT_BY[event]:
                    return thread
            write_event(journal, store, (bundle, thread), event, clock_ms())
            return thread
        if not is_asked:
            queue.request(thread, event)
            # crash here: the worker carries it out all the same
            is_asked = True
        time.sleep(POLL_S)
    worker = copies.pending([thread]).get(thread) or "its worker"
    raise RefusedError(
        f"thread {thread}: {worker} has not answered in {STEER_TIMEOUT_S:.0f} s;"
        " the request stays, for it or for the worker that takes the thread over"
    )


@contextmanager
def owned_soon(copies: ThreadCopies, bundle: BundleHash, thread: ThreadId) -> Iterator[Journal]:
    """Own a thread's journal for a block, once another command or a worker that leaves the thread
    has closed it.
    """
    give_up_s = time.monotonic() + BUSY_S
    with ExitStack() as stack:
        while True:
            try:
                journal = stack.enter_context(copies.owned(bundle, thread))
                break
            except JournalBusy:
                if time.monotonic() > give_up_s:
                    raise
            time.sleep(POLL_S)
        yield journal
