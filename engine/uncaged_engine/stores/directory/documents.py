"""Registry and shared documents of a directory. A version is a hash of the bytes."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.storage.files import (
    changing,
    read_if_there,
    sync_directory,
    write_atomically,
)
from uncaged_bundles.storage.registry import LOCK_TIMEOUT_S
from uncaged_bundles.storage.store import Store

from ...journal.blobs import blob_hash
from ..names import FOLDERS, is_document, parse_document
from ..protocol import ChangedMeanwhile, VersionedBytes

_LOCKED_AS_A_WHOLE = frozenset(("proposals", "schedules"))
"""Folders whose writers hold the folder's lock; elsewhere each file has its own."""


class DirectoryRegistry:
    """The file ``workflow.yaml``, as `RegistryStorage`. Its index follows when it is next read."""

    def __init__(self, store: Store) -> None:
        self._path = store.registry_path

    def read(self) -> VersionedBytes | None:
        return _read(self._path)

    def version(self) -> str | None:
        found = self.read()
        return None if found is None else found.version

    def replace(self, data: bytes, *, version: str | None) -> str:
        return _replace(self._path, self._path, data, version)


class DirectoryDocuments:
    """The files whose names `is_document` accepts, as `DocumentStorage`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> list[str]:
        found: list[str] = []
        for folder in FOLDERS:
            directory = self._root / folder
            if directory.is_dir():
                names = (
                    f"{folder}/{path.name}" if folder else path.name for path in files(directory)
                )
                found.extend(filter(is_document, names))
        return sorted(found)

    def read(self, name: str) -> VersionedBytes | None:
        return _read(self._root / parse_document(name))

    def replace(self, name: str, data: bytes, *, version: str | None) -> str:
        path = self._root / parse_document(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return _replace(path, _locked(path), data, version)

    def remove(self, name: str, *, version: str) -> None:
        path = self._root / parse_document(name)
        with changing(_locked(path), timeout_s=LOCK_TIMEOUT_S):
            found = _read(path)
            if found is None or found.version != version:
                raise _changed(path)
            path.unlink()
            sync_directory(path.parent)


def files(directory: Path) -> list[Path]:
    """Return the regular files of a directory; links are not followed."""
    return [path for path in directory.iterdir() if path.is_file() and not path.is_symlink()]


def _locked(path: Path) -> Path:
    return path.parent if path.parent.name in _LOCKED_AS_A_WHOLE else path


def _read(path: Path) -> VersionedBytes | None:
    data = read_if_there(path)
    return None if data is None else VersionedBytes(data=data, version=blob_hash(data))


def _replace(path: Path, locked: Path, data: bytes, version: str | None) -> str:
    with changing(locked, timeout_s=LOCK_TIMEOUT_S):
        found = _read(path)
        if (None if found is None else found.version) != version:
            raise _changed(path)
        write_atomically(path, data)
    return blob_hash(data)


def _changed(path: Path) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{path} was changed by another process just now; try again")
