"""Events of a shared store's thread, as its lines become durable."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing

from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import BundleHash, ThreadId

from ..journal.blobs import BlobDirectory, named_in
from ..journal.lines import END
from ..state.observe import ThreadView, parse_records, view
from ..stores.reading import lines_of
from ..threads.following import Event
from .dispatch import Dispatcher
from .replica import Replica

PATIENCE_S = 5.0
LOOK_S = 0.5
"""How often a follower without a new line asks whether a worker has the thread."""
OUTAGE_S = 60.0
"""How long the store may fail before a follower gives up."""


def follow_shared(
    replica: Replica,
    dispatcher: Dispatcher,
    bundle: BundleHash,
    thread: ThreadId,
    *,
    still_waits: Callable[[], None],
) -> Iterator[Event]:
    """Yield the records of a thread from its start on, until it has ended or no worker has it.

    Args:
        still_waits: called once if there is nothing but the start record after `PATIENCE_S`.
    """
    blobs = BlobDirectory(replica.files.blobs)
    place = 0
    for line in _lines(replica, dispatcher, (bundle, thread), still_waits):
        for name in named_in(line):
            replica.fetch_blob(name)
        place += len(line)
        [record] = parse_records(line, blobs)
        yield Event(kind="record", body=record, place=place)
        if line.startswith(END):
            return


def _lines(
    replica: Replica,
    dispatcher: Dispatcher,
    thread: tuple[BundleHash, ThreadId],
    still_waits: Callable[[], None],
) -> Iterator[bytes]:
    """Yield lines until no worker has the thread, also past an outage of the store."""
    number = 0
    patient_until_s = time.monotonic() + PATIENCE_S
    failing_since_s: float | None = None
    while True:
        replies = 0
        try:
            for line in _until_left(replica, dispatcher, thread, number):
                replies += 1
                # a single reply without a line may come between two failures of one outage
                if line is not None or replies > 1:
                    failing_since_s = None
                if line is None:
                    if number == 1 and time.monotonic() > patient_until_s:
                        patient_until_s = math.inf
                        still_waits()
                    continue
                number += 1
                yield line
            return
        except StorageError:
            now_s = time.monotonic()
            failing_since_s = now_s if failing_since_s is None else failing_since_s
            if now_s - failing_since_s > OUTAGE_S:
                raise
        time.sleep(LOOK_S)


def _until_left(
    replica: Replica, dispatcher: Dispatcher, thread: tuple[BundleHash, ThreadId], number: int
) -> Iterator[bytes | None]:
    """Yield lines, and None for each time without one at which store and dispatcher replied."""
    is_left = False
    following = replica.backend.threads.follow(*thread, from_line=number, timeout_s=LOOK_S)
    with closing(following) as stream:
        for lines in stream:
            yield from lines
            if not lines:
                if is_left:
                    return
                # the lines that came before its end are read once more
                is_left = not dispatcher.is_pending(thread[1])
                yield None


def view_shared(replica: Replica, bundle: BundleHash, thread: ThreadId) -> ThreadView:
    """Return a thread as it is now."""
    threads = replica.backend.threads
    lines = list(lines_of(threads, bundle, thread))
    path = replica.put_journal(bundle, thread, lines, threads.notes(bundle, thread))
    try:
        return view(replica.files, bundle, thread, path)
    finally:
        replica.drop_journal(bundle, thread)
