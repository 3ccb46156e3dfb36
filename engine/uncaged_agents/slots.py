"""Limit on the agents of one user that work at once on this machine, over all stores. Others wait
for a slot and can be killed.

A slot is a lock on a file, so a worker that dies releases its slots. A process that takes a slot
releases it again if that makes more agents than its own config allows, as other configs may allow
more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from uncaged_bundles.errors import EnvironmentLacks, RefusedError, UncagedError
from uncaged_engine.door.effects import AgentPermits, Cancel
from uncaged_engine.services.journal import is_live, take
from uncaged_engine.services.processes import runtime_directory

POLL_S = 0.2
SUFFIX = ".place"
_HELD: dict[Path, set[int]] = {}
"""The slots of this process, by directory; these need no system call."""
_HOLDING = threading.Lock()

Progress = Callable[[Mapping[str, object]], None]


class SlotCancelled(Exception):
    """The step was killed while it waited."""


class AgentSlot:
    """Slot in *directory*, one of *limit*, held inside its ``with`` block.

    permits: those of all workers, if the thread is of a shared store.
    """

    def __init__(
        self,
        directory: Path,
        limit: int,
        cancel: Cancel,
        progress: Progress,
        permits: AgentPermits | None = None,
    ) -> None:
        self._permits = permits
        self._is_permitted = False
        self._directory = directory
        self._limit = limit
        self._cancel = cancel
        self._progress = progress
        self._descriptor: int | None = None
        self._number = 0

    def __enter__(self) -> Self:
        """Wait for a slot.

        Raises:
            SlotCancelled: a kill came first.
        """
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the slot while the block runs, so that an agent that waits for others does not
        keep them from working.
        """
        self._release()
        try:
            yield
        finally:
            self._wait()

    def _wait(self) -> None:
        """Wait for a slot, and report the wait as progress."""
        try:
            if not self._try_both():
                self._queue()
        except FileNotFoundError as exc:  # some systems remove it when the user logs out
            raise EnvironmentLacks(
                f"the directory of the slots for agents, {self._directory}, is gone",
                remedy="log in again",
            ) from exc

    def _queue(self) -> None:
        self._progress({**self._report(), "queued": True})
        try:
            while True:
                if self._cancel.wait(POLL_S):
                    raise SlotCancelled
                if self._try_both():
                    break
                self._progress(self._report())  # a new follower may be there
        finally:
            self._progress({"queued": False})

    def _try_both(self) -> bool:
        """Take a slot of this machine and a permit of the store, both or neither."""
        self._descriptor = self._try_take()
        if self._descriptor is None or self._permits is None:
            return self._descriptor is not None
        try:
            self._is_permitted = self._permits.try_take()
        except UncagedError as exc:
            self._release()
            raise EnvironmentLacks(
                f"the store cannot tell how many agents work: {exc}", remedy="try again"
            ) from exc
        if not self._is_permitted:
            self._release()
        return self._is_permitted

    def _report(self) -> dict[str, object]:
        if self._permits is not None:
            return {"text": "queued: as many agents work as this machine or the store allows"}
        with _HOLDING:
            count = held_slots(self._directory)
        return {
            "text": f"queued: {'1 agent works' if count == 1 else f'{count} agents work'} on this machine already"
        }

    def _release(self) -> None:
        if self._permits is not None and self._is_permitted:
            self._permits.release()
        self._is_permitted = False
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with _HOLDING:
                _HELD[self._directory].discard(self._number)
                os.close(descriptor)

    def _try_take(self) -> int | None:
        """Return a descriptor that holds the lock of a free slot; None if there is none."""
        with _HOLDING:
            held = _HELD.setdefault(self._directory, set())
            for number in range(self._limit):
                if number in held:
                    continue
                descriptor = os.open(
                    self._directory / f"{number}{SUFFIX}",
                    os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
                    0o600,
                )
                kept = False
                try:
                    if take(descriptor):
                        if held_slots(self._directory) > self._limit:  # our own is among them
                            return None
                        os.utime(descriptor)  # cleaners of old files leave it alone
                        held.add(number)
                        self._number, kept = number, True
                        return descriptor
                finally:
                    if not kept:
                        os.close(descriptor)
        return None


def held_slots(directory: Path) -> int:
    """Return how many slots are held at this moment."""
    mine = {f"{number}{SUFFIX}" for number in tuple(_HELD.get(directory, ()))}
    with os.scandir(directory) as entries:
        others = [
            entry.path
            for entry in entries
            if entry.name.endswith(SUFFIX) and entry.name not in mine
        ]
    return len(mine) + sum(is_live(Path(path)) for path in others)


def slots_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of this user's slots on this machine.

    Raises:
        EnvironmentLacks: there is no directory that is this user's alone.
    """
    try:
        directory = runtime_directory(environment) / "agents"
        directory.mkdir(mode=0o700, exist_ok=True)
    except (RefusedError, OSError) as exc:
        raise EnvironmentLacks(
            f"agents have no directory for their slots: {exc}", remedy="fix that"
        ) from exc
    return directory
