"""Copies of a shared store's bundles, registry, journals and blobs in a directory of one process,
for code that reads files.

The directory is a scratch store: one that a killed process left is removed by the next one, with
the processes of its threads.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.files import write_atomically
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..journal.blobs import BlobDirectory, named_in
from ..journal.origin import path_beside
from ..stores.protocol import StoreBackend, ThreadNotes
from ..threads.scratch import ScratchStore, scratch_store
from ..threads.starting import Chance, granted_bundle


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStore(ScratchStore):
    """Scratch store with bundles and a registry of its own. Config and keys are those of the
    person's store.

    stored: lists the bundles of the shared store, of which only those in use are copied.
    bring: copies the thread that a text names, and returns its place; None: what is named must have
    been copied.
    """

    stored: Callable[[], list[BundleHash]]
    bring: Callable[[str], tuple[BundleHash, ThreadId, Path]] | None = None

    @property
    def bundles(self) -> Path:
        return self.scratch / "bundles"

    @property
    def registry_path(self) -> Path:
        return self.scratch / "workflow.yaml"

    def find_bundles(self) -> list[BundleHash]:
        return self.stored()

    def locate_thread(self, text: str) -> tuple[BundleHash, ThreadId, Path]:
        return ScratchStore.locate_thread(self, text) if self.bring is None else self.bring(text)

    def locate_threads(self, texts: Iterable[str]) -> list[tuple[BundleHash, ThreadId, Path]]:
        return [self.locate_thread(text) for text in texts]


class Replica:
    """Copies from one store in one directory. Its methods may be called from several threads."""

    def __init__(self, backend: StoreBackend, files: ReplicaStore) -> None:
        self.backend = backend
        self.files = files
        self._blobs = BlobDirectory(files.blobs)
        self._known_blobs: set[str] = set()
        self._version: str | None = None
        self._lock = threading.Lock()

    def bundle(self, bundle: BundleHash) -> Bundle:
        """Copy a bundle, and return it if a person has granted it in the shared store.

        Raises:
            RefusedError: it was not granted. NotFoundError, DamagedError: as `BundleStorage.get`.
        """
        with self._lock:
            self.bring_bundle(bundle)
            return granted_bundle(self.files, self._registry(), bundle)

    def bring_bundle(self, bundle: BundleHash) -> None:
        """Copy a bundle. Raises: as `BundleStorage.get`."""
        path = self.files.bundle_path(bundle)
        if not path.exists():
            write_atomically(path, self.backend.bundles.get(bundle))

    def bring_registry(self) -> None:
        """Copy the registry, if there is one."""
        with self._lock, suppress(NotFoundError):
            self._registry()

    def resolve(self, flow: str) -> tuple[str | None, BundleHash]:
        """Return the bundle of the shared store that a person named (`Registry.resolve`).

        Raises:
            NotFoundError: there is none. RefusedError: the flow is disabled, or its entry cannot be
                read. UsageError: *flow* is the start of several hashes.
        """
        address = self.backend.address
        with self._lock:
            registry = self._registry()
            try:
                return registry.resolve(flow)
            except NotFoundError as exc:
                raise NotFoundError(
                    f"{address} has no flow {flow!r}; `uncaged-workflow store copy` brings those of a directory"
                ) from exc
            except RefusedError as exc:
                raise RefusedError(
                    f"{address}: {exc}; do that with UNCAGED_WORKFLOW_HOME=DIR in a copy,"
                    f" made by `uncaged-workflow store copy {quote(address)} DIR`, and copy it back with --replace"
                ) from exc

    def _registry(self) -> Registry:
        found = self.backend.registry.read()
        if found is None:
            raise NotFoundError(
                f"{self.backend.address} has no flow yet; add it to a directory, then `uncaged-workflow store copy` that"
            )
        if found.version != self._version:
            write_atomically(self.files.registry_path, found.data)
            self._version = found.version
        return Registry(self.files)

    def put_journal(
        self, bundle: BundleHash, thread: ThreadId, lines: Sequence[bytes], notes: ThreadNotes
    ) -> Path:
        """Copy a thread with its blobs; return the path of its journal."""
        path = self.files.data_path(bundle, thread)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fetch_blobs(lines)
        if notes.origin is not None:
            write_atomically(path_beside(path), notes.origin)
        if notes.info:
            write_atomically(self.files.info_path(bundle, thread), notes.info)
        write_atomically(path, b"".join(lines))
        return path

    def add_lines(self, bundle: BundleHash, thread: ThreadId, lines: Sequence[bytes]) -> None:
        """Append further lines to the copy of a thread, after the blobs that they name."""
        self._fetch_blobs(lines)
        with self.files.data_path(bundle, thread).open("ab") as file:
            file.write(b"".join(lines))

    def _fetch_blobs(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            for name in named_in(line):
                self.fetch_blob(name)

    def info(self, bundle: BundleHash, thread: ThreadId) -> bytes:
        """Return the debug log of a thread as this process has it."""
        try:
            return self.files.info_path(bundle, thread).read_bytes()
        except FileNotFoundError:
            return b""

    def drop_journal(self, bundle: BundleHash, thread: ThreadId) -> None:
        """Remove the copy of a thread; blobs stay until the process ends."""
        path = self.files.data_path(bundle, thread)
        for one in path.parent.glob(f"{thread}.*"):
            one.unlink(missing_ok=True)

    def fetch_blob(self, name: str) -> None:
        """Copy a blob from the store, unless it is there. Raises: as `BlobStorage.get`."""
        if name not in self._known_blobs:
            self._blobs.put_aside(self.backend.blobs.get(name))
            self._known_blobs.add(name)

    def send_blobs(self, lines: bytes) -> None:
        """Put the blobs that *lines* name into the store."""
        for name in named_in(lines) - self._known_blobs:
            self.backend.blobs.put(self._blobs.get(name))
            self._known_blobs.add(name)


@contextmanager
def replica(
    backend: StoreBackend,
    home: Store,
    chance: Chance,
    *,
    bring: Callable[[str], tuple[BundleHash, ThreadId, Path]] | None = None,
) -> Iterator[Replica]:
    """Yield a replica in a directory below *home*, and remove it afterwards. bring: see
    `ReplicaStore`.
    """
    with scratch_store(home, chance, home.root) as scratch:
        fields = {one.name: getattr(scratch, one.name) for one in dataclasses.fields(scratch)}
        files = ReplicaStore(**fields, stored=backend.bundles.hashes, bring=bring)
        files.bundles.mkdir(mode=0o700)
        yield Replica(backend, files)
