"""Registry of a shared store: read from a copy in this process's directory, changed in the store.

A change is made on the text that the store has, and written if the store still has that text;
otherwise it is made again, on the newer one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from uncaged_bundles.storage.files import changing, write_atomically
from uncaged_bundles.storage.index import Index
from uncaged_bundles.storage.registry import LOCK_TIMEOUT_S, Registry
from uncaged_bundles.storage.store import Store

from ..stores.protocol import ChangedMeanwhile, RegistryStorage, VersionedBytes

if TYPE_CHECKING:
    from uncaged_bundles.storage.draft import RegistryDraft

FRESH_S = 1.0
"""How old a copy may be that is read without a look at the store."""
MOST_TRIES = 30

T = TypeVar("T")


class SharedRegistry(Registry):
    """The flows of one shared store. Its methods may be called from several threads."""

    def __init__(self, files: Store, storage: RegistryStorage, address: str) -> None:
        super().__init__(files)
        self._where = f"{files.registry_path.name} in {address}"
        self._storage = storage
        self._lock = threading.RLock()
        self._copied: VersionedBytes | None = None
        self._looked_s: float | None = None
        self._begun_with = threading.local()

    def refresh(self) -> VersionedBytes | None:
        """Copy the registry if the store has another one by now; return its text, None if the store
        has none yet.

        Raises: as `RegistryStorage.read`.
        """
        with self._lock:
            version = self._storage.version()
            known = None if self._copied is None else self._copied.version
            if version != known:
                found = self._storage.read()
                with changing(self._path, timeout_s=LOCK_TIMEOUT_S):
                    write_atomically(
                        self._path, b"" if found is None else found.data, durable=False
                    )
                self._copied = found
            self._looked_s = time.monotonic()
            return self._copied

    def freshen(self) -> None:
        """Do what `refresh` does, unless that was done a moment ago."""
        looked_s = self._looked_s
        if looked_s is None or time.monotonic() - looked_s > FRESH_S:
            self.refresh()

    def again(self, action: Callable[[], T]) -> T:
        """Call *action*, which reads the registry and then changes it once, with one text for both;
        call it again if the store has another one by the time of the change.

        Raises:
            ChangedMeanwhile: others were quicker each time.
        """
        tries = MOST_TRIES
        while True:
            tries -= 1
            with self._one_text():
                try:
                    return action()
                except ChangedMeanwhile:
                    if not tries:
                        raise

    def _change(self, change: Callable[[RegistryDraft], T]) -> T:
        if not hasattr(self._begun_with, "text"):
            return self.again(lambda: self._change(change))
        base: VersionedBytes | None = self._begun_with.text
        draft = self._begun(b"" if base is None else base.data)
        former = draft.text
        found = change(draft)
        if draft.text != former:
            with self._lock:
                version = self._storage.replace(
                    draft.text, version=None if base is None else base.version
                )
                # crash here: the store has the change, and this process's copy ends with it
                with changing(self._path, timeout_s=LOCK_TIMEOUT_S):
                    self._write(draft)
                self._copied = VersionedBytes(data=draft.text, version=version)
            self._begun_with.text = self._copied
        return found

    @contextmanager
    def _one_text(self) -> Iterator[None]:
        self._begun_with.text = self.refresh()
        try:
            yield
        finally:
            del self._begun_with.text

    def _ask(self, question: Callable[[Index], T]) -> T:
        if not hasattr(self._begun_with, "text"):
            self.freshen()
        return super()._ask(question)
