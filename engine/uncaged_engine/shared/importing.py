"""Import of an exported thread into a shared store."""

from __future__ import annotations

from contextlib import suppress

from uncaged_bundles.errors import NotFoundError

from ..journal.blobs import BlobDirectory
from ..journal.origin import ThreadOrigin, data_of
from ..stores.protocol import ThreadEntry, ThreadNotes
from ..threads.removal import children_of
from ..threads.transfer import ThreadFiles
from .replica import Replica


def store_shared(replica: Replica, files: ThreadFiles, origin: ThreadOrigin) -> None:
    """Store a thread that was checked: what it refers to, then its lines with their origin, whole
    or not at all. Blobs without their thread are removed by `prune`; markers of its children say
    nothing without it.

    Raises:
        RefusedError: the store has the thread. DamagedError: it has another bundle with its hash.
    """
    backend, bundle, thread = replica.backend, files.bundle, files.thread_id
    backend.bundles.put(bundle.source)
    blobs = BlobDirectory(replica.files.blobs)
    for data in files.blobs.values():
        backend.blobs.put(data)
        blobs.put_aside(data)
    for child in children_of(replica.files, files.history, blobs):
        with suppress(NotFoundError):
            if backend.threads.locate(child).id == child:
                continue  # it is held here
        backend.threads.mark_removed(bundle.hash, child)
    backend.threads.start(
        ThreadEntry(bundle=bundle.hash, id=thread, place=-1),
        files.journal.splitlines(keepends=True),
        ThreadNotes(origin=data_of(origin)),
    )
