"""Bundles and blobs of a directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from uncaged_bundles.errors import BundleError, DamagedError, EnvironmentLacks, NotFoundError
from uncaged_bundles.ids import BundleHash, bundle_hash
from uncaged_bundles.storage.files import read_if_there
from uncaged_bundles.storage.store import Store

from ...effect_kinds import KNOWN
from ...journal.blobs import BlobDirectory

_BLOB = re.compile(r"[0-9a-f]{32}")


class DirectoryBundles:
    """The folder ``bundles``, as `BundleStorage`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, source: bytes) -> BundleHash:
        """See `BundleStorage.put`. A bundle that cannot run here (a package for one of its effects
        is missing) gets no copy of its descriptor.

        Raises besides: BundleError, for more bytes than a bundle may have.
        """
        from uncaged_bundles.validation.validate import MAX_SOURCE_BYTES, read_bundle

        try:
            self._store.put_bundle(read_bundle(source, KNOWN))
        except (BundleError, EnvironmentLacks):
            if len(source) > MAX_SOURCE_BYTES:
                raise
            return self._store.put_source(source)
        return bundle_hash(source)

    def get(self, hash: BundleHash) -> bytes:
        path = self._store.bundle_path(hash)
        source = read_if_there(path)
        if source is None:
            raise NotFoundError(f"no bundle {hash} in {self._store.bundles}")
        if bundle_hash(source) != hash:
            raise DamagedError(f"{path}: its bytes have the hash {bundle_hash(source)}")
        return source

    def hashes(self) -> list[BundleHash]:
        return self._store.find_bundles()


class DirectoryBlobs:
    """The folder ``blobs``, as `BlobStorage`."""

    def __init__(self, directory: Path) -> None:
        self._directory = BlobDirectory(directory)

    def put(self, data: bytes) -> str:
        return self._directory.put(data)

    def get(self, name: str) -> bytes:
        return self._directory.get(name)

    def names(self) -> Iterator[str]:
        found = (path.name for path in self._directory.directory.iterdir())
        yield from sorted(filter(_BLOB.fullmatch, found))
