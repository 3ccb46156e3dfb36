"""Documents of a shared store that the reader of sentences needs, copied into a directory of this
process and sent back if they were changed there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.storage.files import write_atomically

from ..stores.directory.documents import DirectoryDocuments
from ..stores.protocol import ChangedMeanwhile, DocumentStorage, VersionedBytes

FOLDERS = ("constructions/", "dispatcher/", "packs/")


class DocumentCopies:
    """Documents of one store in one directory."""

    def __init__(self, storage: DocumentStorage, root: Path) -> None:
        self._storage = storage
        self._root = root
        self._known: dict[str, VersionedBytes] = {}
        self._lock = threading.Lock()

    def bring(self) -> None:
        """Copy the documents; those that the store has no more vanish here, too.

        Raises: as `DocumentStorage.read`.
        """
        with self._lock:
            self._bring()

    def send(self) -> None:
        """Write those that were changed here into the store. What another machine has changed
        meanwhile stays as it is there.
        """
        with self._lock:
            for name, data in self._changed().items():
                self._write(name, data)

    def keep(self) -> list[str]:
        """Write all that was changed or removed here into the store, or nothing.

        Returns:
            The names of those that another machine has changed meanwhile: its changes are kept, and
            the copies are those of the store again.
        """
        with self._lock:
            changes = {**self._changed(), **dict.fromkeys(self._removed())}
            lost = [name for name, data in changes.items() if self._is_lost(name, data)]
            if not lost:
                # a change of another machine within these milliseconds is found by its version
                lost = [name for name, data in changes.items() if not self._write(name, data)]
            if lost:
                for name in changes:
                    self._forget(name)
                self._bring()
            return sorted(lost)

    def _bring(self) -> None:
        there = [name for name in self._storage.names() if name.startswith(FOLDERS)]
        for name in there:
            found = self._storage.read(name)
            if found is not None and found != self._known.get(name):
                path = self._root / name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                write_atomically(path, found.data)
                self._known[name] = found
        for name in self._known.keys() - set(there):
            self._forget(name)

    def _changed(self) -> Mapping[str, bytes]:
        """Return the documents that were changed or made here."""
        here, changed = DirectoryDocuments(self._root), {}
        for name in here.names():
            found, known = here.read(name), self._known.get(name)
            if not name.startswith(FOLDERS) or found is None:
                continue
            if known is None or known.data != found.data:
                changed[name] = found.data
        return changed

    def _removed(self) -> list[str]:
        """Return the documents that were removed here; none if their directory was."""
        gone = [name for name in self._known if not (self._root / name).exists()]
        return gone if self._root.is_dir() else []

    def _is_lost(self, name: str, data: bytes | None) -> bool:
        """Tell whether another machine has changed a document. data: None of a removed one."""
        found, known = self._storage.read(name), self._known.get(name)
        if found is None:
            return known is not None and data is not None
        return known is None or found.version != known.version

    def _write(self, name: str, data: bytes | None) -> bool:
        """Write or remove a document in the store; False if another machine has changed it."""
        known = self._known.get(name)
        version = None if known is None else known.version
        try:
            if data is not None:
                version = self._storage.replace(name, data, version=version)
                self._known[name] = VersionedBytes(data=data, version=version)
            elif version is not None:
                self._storage.remove(name, version=version)
                del self._known[name]
        except ChangedMeanwhile:
            return data is None and self._storage.read(name) is None
        return True

    def _forget(self, name: str) -> None:
        """Remove a copy."""
        (self._root / name).unlink(missing_ok=True)
        self._known.pop(name, None)
