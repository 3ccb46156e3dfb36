"""Store in a directory as a `StoreBackend`."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UsageError, os_problem
from uncaged_bundles.storage.store import DIRECTORIES, Store

from .contents import DirectoryBlobs, DirectoryBundles
from .conversations import DirectoryConversations
from .documents import DirectoryDocuments, DirectoryRegistry
from .threads import DirectoryThreads

_BEFORE = frozenset((*DIRECTORIES, "config.yaml", "keys"))
"""Names in a directory that a store is made in: what a killed process made of it, and what a person
put there before.
"""


class DirectoryBackend:
    """The parts of one directory. It holds no file open."""

    def __init__(self, store: Store) -> None:
        self.address = str(store.root.resolve())
        self.bundles = DirectoryBundles(store)
        self.registry = DirectoryRegistry(store)
        self.threads = DirectoryThreads(store)
        self.blobs = DirectoryBlobs(store.blobs)
        self.conversations = DirectoryConversations(store.root)
        self.documents = DirectoryDocuments(store.root)

    @classmethod
    def open(cls, directory: Path, *, create: bool) -> DirectoryBackend:
        """Open the store in a directory.

        Raises:
            NotFoundError: there is none, and *create* is false.
            UsageError: it cannot be made, or the directory has other files.
        """
        root = directory.expanduser().absolute()
        if not create and not (root / "logs").is_dir():
            raise NotFoundError(f"no store in {root}; give a store's directory, or postgresql://…")
        if create and not _has_room(root):
            raise UsageError(
                f"{root} is no store and has other files, which stay as they are; give a store's directory, an empty one or a new one"
            )
        try:
            return cls(Store.open(root))
        except UsageError as exc:
            why = os_problem(exc.__cause__) if isinstance(exc.__cause__, OSError) else exc
            raise UsageError(
                f"no store can be made in {root}: {why}; give another directory"
            ) from exc

    def close(self) -> None:
        """Do nothing: no file is open."""


def _has_room(root: Path) -> bool:
    """Tell whether a directory has a store, or nothing that is foreign to one. One that cannot be
    listed is left to the opening.
    """
    try:
        names = {path.name for path in root.iterdir()}
    except OSError:
        return True
    return names.issuperset(("bundles", "logs", "blobs")) or names.issubset(_BEFORE)
