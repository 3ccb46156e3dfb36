"""Events of a shared store's thread, as its lines become durable."""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_bundles.ids import BundleHash, ThreadId

from ..journal.blobs import BlobDirectory, named_in
from ..journal.lines import END
from ..state.observe import ThreadView, parse_records, view
from ..threads.following import Event
from .dispatch import Dispatcher
from .replica import Replica

LOOK_S = 0.5
"""How often a follower without a new line asks whether a worker has the thread."""


def follow_shared(
    replica: Replica, dispatcher: Dispatcher, bundle: BundleHash, thread: ThreadId
) -> Iterator[Event]:
    """Yield the records of a thread from its start on, until it has ended or no worker has it."""
    threads, blobs = replica.backend.threads, BlobDirectory(replica.files.blobs)
    place = 0
    is_left = False
    stream = threads.follow(bundle, thread, timeout_s=LOOK_S)
    try:
        for lines in stream:
            for line in lines:
                for name in named_in(line):
                    replica.fetch_blob(name)
                place += len(line)
                [record] = parse_records(line, blobs)
                yield Event(kind="record", body=record, place=place)
                if line.startswith(END):
                    return
            if not lines and is_left:
                return
            if not lines:
                # lines that came before its end are read once more
                is_left = not dispatcher.is_pending(thread)
    finally:
        stream.close()


def view_shared(replica: Replica, bundle: BundleHash, thread: ThreadId) -> ThreadView:
    """Return a thread as it is now."""
    threads = replica.backend.threads
    lines: list[bytes] = []
    while more := threads.read(bundle, thread, from_line=len(lines)):
        lines += more
    path = replica.put_journal(bundle, thread, lines, threads.notes(bundle, thread))
    try:
        return view(replica.files, bundle, thread, path)
    finally:
        replica.drop_journal(bundle, thread)
