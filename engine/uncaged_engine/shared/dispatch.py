"""Protocol of a dispatcher: hands the threads of a shared store to workers, and those of a
worker that died to others.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass

from ..journal import chain, lines
from ..stores.protocol import StoreBackend

_INTENT_KIND = re.compile(rb'\{"seq":\d+,"intent":\{"(?:kind":")?([a-z][a-z_]*)"')
SPILT, OUTPUT = "effect", "output"
"""Kinds of a step whose intent is in a blob, and of one that the bundle made itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadExchange:
    """A finished step: its number, the kind of its effect, and the digest of its line in the
    journal. The same lines have the same exchanges.
    """

    seq: int
    kind: str
    digest: str


class ExchangeReader:
    """Reader of the exchanges among a journal's lines, which it gets in order."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def read(self, line: bytes) -> ThreadExchange | None:
        """Return the exchange that *line* ends, or None."""
        shape, seq = lines.shape_of(line)
        if shape == "intent":
            found = _INTENT_KIND.match(line)
            self._kind = SPILT if found is None else found[1].decode()
        if shape != "step" or lines.is_sub_step(line):
            return None
        kind, self._kind = self._kind or OUTPUT, None
        return ThreadExchange(seq=seq, kind=kind, digest=(chain.stated(line) or b"").hex())


Recorder = Callable[[ThreadExchange], None]
"""Records a finished step with the dispatcher. Called for each step of a thread in order, from the
first on, each time that the thread is driven.
"""
DriveThread = Callable[[BundleHash, ThreadId, Recorder], str]
"""Drives a thread and returns the word with which it was left.

Raises:
    StorageError: the thread may belong to another worker by now. The caller's process must end
        without a result.
"""


class Dispatcher(Protocol):
    """Dispatcher of one store. The journals decide what was done; a dispatcher decides only who
    drives a thread.
    """

    def submit(self, bundle: BundleHash, thread: ThreadId) -> None:
        """Have a worker drive a thread, once it is in the store; durable when this returns.
        Idempotent.
        """

    def is_pending(self, thread: ThreadId) -> bool:
        """Tell whether a worker drives the thread, or one will."""

    def work(
        self,
        drive: DriveThread,
        *,
        slots: int,
        until_idle: bool,
        stop: threading.Event,
        started: Callable[[], None],
    ) -> None:
        """Drive threads, at most *slots* at a time, until *stop* is set; then take no more, and
        return once those that run have been left.

        Args:
            started: called once this worker can take threads.
            until_idle: return as well once no thread of the store is pending.
        Raises:
            StorageError: the store was lost. Threads of this process may be driven by others: it
                must end.
        """

    def close(self) -> None:
        """Release the connections. Idempotent."""


@runtime_checkable
class SharedStore(StoreBackend, Protocol):
    """A store whose threads are driven by workers on several machines."""

    def dispatcher(self) -> Dispatcher:
        """Return the store's dispatcher, which the caller closes.

        Raises:
            EnvironmentLacks: a library is not installed.
        """
