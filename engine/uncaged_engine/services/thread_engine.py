"""Engine of the store in which a thread is driven, for effects that look at other threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles.storage.store import Store

from ..api import Engine
from ..shared.dispatch import SharedStore
from ..shared.replica import ReplicaStore
from ..threads.starting import Chance

__all__ = ["thread_engine"]


@contextmanager
def thread_engine(store: Store) -> Iterator[Engine]:
    """Yield the engine of a thread's store: in a worker of a shared store, that one, with copies of
    the threads that are read.
    """
    if not isinstance(store, ReplicaStore) or not isinstance(store.backend, SharedStore):
        yield Engine(store)
        return
    from ..shared_engine import engine_on  # a worker of a directory does without

    chance = Chance()
    with engine_on(store.backend, store.person, report=_report_nothing, chance=chance) as engine:
        yield engine


def _report_nothing(_reason: str) -> None:
    """Report nothing: no thread is followed."""
