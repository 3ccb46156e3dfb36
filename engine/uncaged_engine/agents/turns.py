"""No more agents work at once than the config allows, over all workers of a store; the others wait and can be killed meanwhile."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..effects import Cancel

POLL_S = 0.2


class Cancelled(Exception):
    """It was killed while it waited."""


@contextmanager
def turn(directory: Path, places: int, cancel: Cancel, progress: Callable[[Mapping[str, object]], None]) -> Iterator[None]:
    """Hold one of *places* while the block runs; a place is a lock file, so a worker that dies gives its places back.

    Raises:
        Cancelled: a kill came first.
    """
    place = _free(directory, places)
    if place is None:
        progress({"text": f"queued: {places} agents work already", "queued": True})
    while place is None:
        if cancel.wait(POLL_S):
            raise Cancelled
        place = _free(directory, places)
    try:
        yield
    finally:
        os.close(place)


def _free(directory: Path, places: int) -> int | None:
    """A descriptor that holds the lock of a free place, or None."""
    for number in range(places):
        place = os.open(directory / f"agent-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(place)
        else:
            return place
    return None
