"""Documents of a shared store that the reader of sentences needs, copied into a directory of this
process and sent back if they were changed there.
"""

from __future__ import annotations

import threading
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
        """Copy the documents. Raises: as `DocumentStorage.read`."""
        with self._lock:
            for name in self._storage.names():
                if not name.startswith(FOLDERS):
                    continue
                found = self._storage.read(name)
                if found is not None and found != self._known.get(name):
                    path = self._root / name
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    write_atomically(path, found.data)
                    self._known[name] = found

    def send(self) -> list[str]:
        """Write those that were changed here into the store; return the names of those that another
        machine has changed meanwhile, which stay as they are there.
        """
        with self._lock:
            return self._sent()

    def _sent(self) -> list[str]:
        here, lost = DirectoryDocuments(self._root), []
        for name in here.names():
            found, known = here.read(name), self._known.get(name)
            if not name.startswith(FOLDERS) or found is None:
                continue
            if known is not None and known.data == found.data:
                continue
            try:
                version = self._storage.replace(
                    name, found.data, version=None if known is None else known.version
                )
            except ChangedMeanwhile:
                lost.append(name)
            else:
                self._known[name] = VersionedBytes(data=found.data, version=version)
        return lost
