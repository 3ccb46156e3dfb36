"""Reading of a whole store, part by part, for its copy and its check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from uncaged_bundles.errors import EnvironmentLacks, StorageError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId

from .protocol import StoreRefused, ThreadEntry, ThreadStorage

KINDS = ("bundles", "blobs", "threads", "conversations", "documents", "registry")
_PAGE = 10_000
_BATCH_LINES = 1_000
_BATCH_BYTES = 8 << 20

Progress = Callable[[str, int], None]
"""Called with a kind and the number of its items that were looked at."""


def entries_of(threads: ThreadStorage) -> Iterator[ThreadEntry]:
    """Yield all threads in the order of `ThreadStorage.page`."""
    after: ThreadEntry | None = None
    while page := threads.page(after=after, limit=_PAGE):
        yield from page
        after = page[-1]


def lines_of(
    threads: ThreadStorage, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0
) -> Iterator[bytes]:
    """Yield all lines of a thread, however many the store returns at once. Raises: as
    `ThreadStorage.read`.
    """
    while lines := threads.read(bundle, thread, from_line=from_line):
        yield from lines
        from_line += len(lines)


def batches_of(lines: Iterator[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield lines in batches, each of 1,000 or of about 8 MiB."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == _BATCH_LINES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def noted_problem(kind: str, problems: list[str]) -> Iterator[None]:
    """Add an item's own problem to *problems*; one of a whole store ends the run."""
    try:
        yield
    except (StorageError, StoreRefused, EnvironmentLacks):
        raise
    except UncagedError as exc:
        problems.append(f"{kind}: {exc}")
