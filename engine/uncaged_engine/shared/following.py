"""Events of a shared store's thread, as its lines become durable."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import BundleHash, ThreadId

from ..journal.blobs import BlobDirectory, needed_in
from ..journal.lines import END, is_sub_step, shape_of
from ..state.observe import parse_records
from ..threads.following import Event
from .dispatch import Report
from .replica import Replica

if TYPE_CHECKING:
    from ..door.effects import Cancel

PATIENCE_S = 5.0
LOOK_S = 0.5
"""How often a follower without a new line asks whether a worker has the thread."""
OUTAGE_S = 60.0
"""How long the store may fail before a follower gives up."""


def follow_shared(
    replica: Replica,
    bundle: BundleHash,
    thread: ThreadId,
    *,
    begin: tuple[int, int] = (0, 0),
    is_left: Callable[[], bool],
    still_waits: Callable[[], None],
    reports: Callable[[], Sequence[Report]],
    cancel: Cancel | None = None,
) -> Iterator[Event]:
    """Yield the records of a thread, and the progress of its effects, until it has ended or no
    worker has it.

    Args:
        begin: how many lines and bytes the caller has already.
        is_left: tells whether no worker drives the thread or will.
        still_waits: called once if there is nothing but the start record after `PATIENCE_S`.
        reports: returns new ones of the thread (`ThreadProgress.follow`).
        cancel: ends the stream from another thread of execution, within `LOOK_S`.
    """
    blobs = BlobDirectory(replica.files.blobs)
    first, place = begin
    ended = 0  # the last step that has
    for line in _lines(replica, (bundle, thread), first, is_left, still_waits):
        if cancel is not None and cancel.requested:
            return
        if line is None:
            for report in reports():
                seq = report.get("seq")
                if isinstance(seq, int) and seq > ended:
                    yield Event(kind="progress", body=report, place=place)
            continue
        shape, number = shape_of(line)
        if shape == "step" and not is_sub_step(line):
            ended = number
        for name in needed_in(line):
            replica.fetch_blob(name)
        place += len(line)
        [record] = parse_records(line, blobs)
        yield Event(kind="record", body=record, place=place)
        # an end that was resumed is not the last line
        if (
            line.startswith(END)
            and replica.backend.threads.head(bundle, thread).size_bytes == place
        ):
            return


def _lines(
    replica: Replica,
    thread: tuple[BundleHash, ThreadId],
    number: int,
    is_left: Callable[[], bool],
    still_waits: Callable[[], None],
) -> Iterator[bytes | None]:
    """Yield lines from *number* on until no worker has the thread, also past an outage of the
    store; None each time that there was none.
    """
    patient_until_s = time.monotonic() + PATIENCE_S
    failing_since_s: float | None = None
    while True:
        replies = 0
        try:
            for line in _until_left(replica, thread, number, is_left):
                replies += 1
                # a single reply without a line may come between two failures of one outage
                if line is not None or replies > 1:
                    failing_since_s = None
                if line is None:
                    if number == 1 and time.monotonic() > patient_until_s:
                        patient_until_s = math.inf
                        still_waits()
                else:
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
    replica: Replica,
    thread: tuple[BundleHash, ThreadId],
    number: int,
    is_left: Callable[[], bool],
) -> Iterator[bytes | None]:
    """Yield lines, and None for each time without one at which store and dispatcher replied."""
    was_left = False
    following = replica.backend.threads.follow(*thread, from_line=number, timeout_s=LOOK_S)
    with closing(following) as stream:
        for lines in stream:
            yield from lines
            if not lines:
                if was_left:
                    return
                # the lines that came before its end are read once more
                was_left = is_left()
                yield None
