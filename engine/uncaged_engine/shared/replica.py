"""Copies of a shared store's bundles, registry, journals and blobs in a directory of one process,
for code that reads files.

The directory is a scratch store: one that a killed process left is removed by the next one, with
the processes of its threads.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.files import write_atomically
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..journal.blobs import BlobDirectory, Blobs, blob_hash, needed_in
from ..journal.origin import path_beside
from ..stores.protocol import BlobStorage, StoreBackend, ThreadNotes
from ..threads.scratch import ScratchStore, scratch_store
from ..threads.starting import Chance, granted_bundle
from .conversations import ConversationCopies
from .registry import SharedRegistry

RESEND_S = 3600.0
"""A blob that was sent within this time is not sent again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStore(ScratchStore):
    """Scratch store with bundles, a registry and documents of its own. Config and keys are those of
    the person's store.

    backend: the shared store; of its bundles only those in use are copied. packs: its blobs, for
    packs of git objects, which are not copied. conversations: copies of its conversations.
    bring: copies the thread that a text names, and returns its place; None: what is named must have
    been copied. log_folder: where copies of threads are, below `scratch`.
    """

    backend: StoreBackend
    packs: Blobs
    conversations: ConversationCopies
    log_folder: str = "logs"
    bring: Callable[[str], tuple[BundleHash, ThreadId, Path]] | None = None

    @property
    def is_shared(self) -> bool:
        return True

    @property
    def logs(self) -> Path:
        return self.scratch / self.log_folder

    @property
    def bundles(self) -> Path:
        return self.scratch / "bundles"

    @property
    def registry_path(self) -> Path:
        return self.scratch / "workflow.yaml"

    @property
    def documents(self) -> Path:
        return self.scratch / "documents"

    @property
    def derived(self) -> Path:
        return self.root / "dispatcher" / "shared" / blob_hash(self.backend.address.encode())

    @property
    def seen_path(self) -> Path:
        return self.derived / "notifications.jsonl"

    def put_source(self, source: bytes) -> BundleHash:
        self.backend.bundles.put(source)
        return ScratchStore.put_source(self, source)

    def bring_bundle(self, bundle: BundleHash) -> None:
        """Copy a bundle, unless it is there. Raises: as `BundleStorage.get`."""
        path = self.bundle_path(bundle)
        if not path.exists():
            write_atomically(path, self.backend.bundles.get(bundle), durable=False)

    def has_bundle(self, hash: BundleHash) -> bool:
        return self.bundle_path(hash).exists() or hash in self.backend.bundles.hashes()

    def find_bundles(self) -> list[BundleHash]:
        return self.backend.bundles.hashes()

    def bundle_source(self, hash: BundleHash) -> bytes:
        self.bring_bundle(hash)
        return Store.bundle_source(self, hash)

    def was_removed(self, thread_id: ThreadId) -> bool:
        with suppress(NotFoundError):
            if self.backend.threads.locate(thread_id).id == thread_id:
                return False
        return self.backend.threads.is_removed(None, thread_id)

    def locate_thread(self, text: str) -> tuple[BundleHash, ThreadId, Path]:
        return ScratchStore.locate_thread(self, text) if self.bring is None else self.bring(text)

    def locate_threads(self, texts: Iterable[str]) -> list[tuple[BundleHash, ThreadId, Path]]:
        return [self.locate_thread(text) for text in texts]


class SharedBlobs(Blobs):
    """Blobs of a shared store, without a copy in this process's directory."""

    def __init__(self, storage: BlobStorage) -> None:
        self._storage = storage

    def put(self, data: bytes) -> str:
        return self._storage.put(data)

    def get(self, name: str) -> bytes:
        return self._storage.get(name)


def pack_blobs(store: Store) -> Blobs:
    """Return where a store keeps packs of git objects."""
    return store.packs if isinstance(store, ReplicaStore) else BlobDirectory(store.blobs)


class Replica:
    """Copies from one store in one directory. Its methods may be called from several threads."""

    def __init__(self, backend: StoreBackend, files: ReplicaStore) -> None:
        self.backend = backend
        self.files = files
        self._blobs = BlobDirectory(files.blobs)
        self._known_blobs: set[str] = set()
        self._sent_s: dict[str, float] = {}
        self.registry = SharedRegistry(files, backend.registry, backend.address)

    def bundle(self, bundle: BundleHash) -> Bundle:
        """Copy a bundle, and return it if a person has granted it in the shared store.

        Raises:
            RefusedError: it was not granted. NotFoundError, DamagedError: as `BundleStorage.get`.
        """
        self.registry.refresh()
        return granted_bundle(self.files, self.registry, bundle)

    def resolve(self, flow: str) -> tuple[str | None, BundleHash]:
        """Return the bundle of the shared store that a person named (`Registry.resolve`).

        Raises:
            NotFoundError: there is none. RefusedError: the flow is disabled, or its entry cannot be
                read. UsageError: *flow* is the start of several hashes.
        """
        if self.registry.refresh() is None:
            raise NotFoundError(
                f"{self.backend.address} has no flow yet; `uncaged-workflow add` adds one,"
                " and `uncaged-workflow store copy` brings those of a directory"
            )
        return self.registry.resolve(flow)

    def put_journal(
        self,
        bundle: BundleHash,
        thread: ThreadId,
        lines: Sequence[bytes],
        notes: ThreadNotes,
        *,
        files: Store | None = None,
    ) -> Path:
        """Copy a thread with its blobs; return the path of its journal. files: None for `files`."""
        files = files or self.files
        path = files.data_path(bundle, thread)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fetch_blobs(lines)
        if notes.origin is not None:
            write_atomically(path_beside(path), notes.origin, durable=False)
        if notes.info:
            write_atomically(files.info_path(bundle, thread), notes.info, durable=False)
        write_atomically(path, b"".join(lines), durable=False)
        return path

    def add_lines(self, bundle: BundleHash, thread: ThreadId, lines: Sequence[bytes]) -> None:
        """Append further lines to the copy of a thread, after the blobs that they name."""
        self._fetch_blobs(lines)
        with self.files.data_path(bundle, thread).open("ab") as file:
            file.write(b"".join(lines))

    def _fetch_blobs(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            for name in needed_in(line):
                self.fetch_blob(name)

    def info(self, bundle: BundleHash, thread: ThreadId) -> bytes:
        """Return the debug log of a thread as this process has it."""
        try:
            return self.files.info_path(bundle, thread).read_bytes()
        except FileNotFoundError:
            return b""

    def drop_journal(
        self, bundle: BundleHash, thread: ThreadId, *, files: Store | None = None
    ) -> None:
        """Remove the copy of a thread, with the repository that was made of its packs; its blobs
        stay until `sweep_blobs`. files: None for `files`.
        """
        chosen = files or self.files
        path = chosen.data_path(bundle, thread)
        for one in path.parent.glob(f"{thread}.*"):
            one.unlink(missing_ok=True)
        shutil.rmtree(chosen.private(thread), ignore_errors=True)

    def fetch_blob(self, name: str) -> None:
        """Copy a blob from the store, unless it is there. Raises: as `BlobStorage.get`."""
        if name in self._known_blobs:
            with suppress(FileNotFoundError):
                os.utime(self.files.blobs / name)  # young again, for `sweep_blobs`
                return
        self._blobs.put_aside(self.backend.blobs.get(name))
        self._known_blobs.add(name)

    def send_blobs(self, lines: bytes) -> None:
        """Put the blobs that *lines* name into the store; packs are there already."""
        now_s = time.monotonic()
        for name in needed_in(lines):
            # a blob that was sent long ago may have been removed with the thread that named it
            if now_s - self._sent_s.get(name, -math.inf) > RESEND_S:
                self.backend.blobs.put(self._blobs.get(name))
                self._sent_s[name] = now_s
                self._known_blobs.add(name)

    def sweep_blobs(self, named: Container[str], *, before_s: float) -> None:
        """Remove the copies of blobs that are not among *named* and were last used before
        *before_s* (seconds since 1970).
        """
        self._blobs.sweep(named, before_s=before_s)
        self._known_blobs &= set(os.listdir(self.files.blobs))  # noqa: PTH208 - names alone


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
        files = ReplicaStore(
            **fields,
            backend=backend,
            packs=SharedBlobs(backend.blobs),
            conversations=ConversationCopies(backend.conversations, scratch.scratch / "documents"),
            bring=bring,
        )
        files.bundles.mkdir(mode=0o700)
        files.documents.mkdir(mode=0o700)
        yield Replica(backend, files)
