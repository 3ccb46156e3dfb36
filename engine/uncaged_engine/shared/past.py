"""Past threads of a flow in a shared store, read one after the other for a replay."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.ids import BundleHash, ThreadId

from ..journal import lines
from ..stores.protocol import StoreBackend, ThreadEntry
from ..stores.reading import lines_of
from ..threads.regression import PastThread, past_thread
from .replica import SharedBlobs

PAGE = 1_000


class PendingQueue(Protocol):
    """Part of a `ThreadQueue`."""

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]: ...


def find_shared_past(
    backend: StoreBackend, queue: PendingQueue, flow: str, versions: Collection[BundleHash]
) -> Iterator[PastThread]:
    """Yield the threads of a flow that no worker drives or will drive, those started first first.

    Args:
        versions: of the flow; threads of other bundles are not looked at.
    """
    blobs = SharedBlobs(backend.blobs)
    after: ThreadEntry | None = None
    while versions and (page := backend.threads.page(after=after, limit=PAGE)):
        after = page[-1]
        chosen = [entry for entry in page if entry.bundle in versions]
        live = queue.pending([entry.id for entry in chosen])
        for entry in chosen:
            if entry.id in live:
                continue
            try:
                found = past_thread(
                    flow, entry.bundle, entry.id, _read_if(backend, flow, entry), blobs
                )
            except (DamagedError, NotFoundError):
                continue  # `threads` lists it as corrupt; or it was removed meanwhile
            if found is not None:
                yield found


def _read_if(backend: StoreBackend, flow: str, entry: ThreadEntry) -> bytes | None:
    """Return a thread's lines; None if it belongs to another flow."""
    first = backend.threads.read(entry.bundle, entry.id, limit=1)
    if not first or lines.flow_in(first[0]) not in (flow, None):
        return None
    return b"".join(lines_of(backend.threads, entry.bundle, entry.id))
