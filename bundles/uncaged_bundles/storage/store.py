"""Store of bundles and threads in one directory. Every path inside it is made from a checked id,
never from text.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..errors import DamagedError, NotFoundError, UsageError
from ..ids import (
    THREAD_ID_LENGTH,
    BundleHash,
    ThreadId,
    bundle_hash,
    is_bundle_hash,
    is_thread_id,
    parse_bundle_hash,
    parse_thread_id,
)
from ..records import dataclass
from . import order
from .files import read_if_there, sync_directory, write_atomically

if TYPE_CHECKING:
    from ..contract import Descriptor
    from ..limits import EffectKinds
    from ..validation.validate import Bundle

HOME_VARIABLE = "UNCAGED_WORKFLOW_HOME"
DATA_SUFFIX = ".data.jsonl"
INFO_SUFFIX = ".info.jsonl"
ARCHIVED_SUFFIX = ".zst"
REMOVED_SUFFIX = ".removed"
"""Ends the name of the marker that a removed child thread leaves beside its journal's place."""
LATEST = "latest"
DIRECTORIES = ("bundles", "logs", "blobs", "work", "run")
"""Directories that `Store.open` makes."""
_SHOWN_CANDIDATES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Bundles by hash, threads by bundle and id. No file is held open, and nothing is cached in
    memory.
    """

    root: Path

    @classmethod
    def open(cls, root: Path | None = None) -> Self:
        """Open the store at *root*, else at ``$UNCAGED_WORKFLOW_HOME``, else at
        ``~/.uncaged/workflow``; missing parts are created.
        """
        chosen = root or Path(
            os.environ.get(HOME_VARIABLE) or Path.home() / ".uncaged" / "workflow"
        )
        store = cls(root=chosen.expanduser().absolute())
        try:
            for name in DIRECTORIES:
                _make_private(store.root / name)
        except OSError as exc:
            raise UsageError(
                f"{str(store.root)!r} cannot be the store ({exc.strerror}); set {HOME_VARIABLE} to another directory"
            ) from exc
        return store

    @property
    def is_shared(self) -> bool:
        """Whether this is a process's copy of a store that several machines share."""
        return False

    @property
    def bundles(self) -> Path:
        return self.root / "bundles"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def documents(self) -> Path:
        """Return the directory of a team's conversations, packs, constructions and preferences."""
        return self.root

    @property
    def derived(self) -> Path:
        """Return the directory of what this machine derives for sentences: indexes of rules."""
        return self.root / "dispatcher"

    @property
    def seen_path(self) -> Path:
        """Return the path of what this machine's person has seen of the store's threads."""
        return self.root / "notifications.jsonl"

    @property
    def lent(self) -> Path:
        """Return the path of the records of directories' former owners while a script's user owns
        them.
        """
        return self.root / "lent"

    @property
    def written(self) -> Path:
        """Return the list of directories that scripts may write."""
        return self.root / "written.jsonl"

    @property
    def config_path(self) -> Path:
        return self.root / "config.yaml"

    @property
    def registry_path(self) -> Path:
        return self.root / "workflow.yaml"

    def bundle_path(self, hash: BundleHash) -> Path:
        return self.bundles / f"{parse_bundle_hash(hash)}.py"

    def data_path(self, hash: BundleHash, thread_id: ThreadId) -> Path:
        """Return the path of a thread's journal; an archived one has the suffix ``.zst``."""
        return self.logs / parse_bundle_hash(hash) / f"{parse_thread_id(thread_id)}{DATA_SUFFIX}"

    def info_path(self, hash: BundleHash, thread_id: ThreadId) -> Path:
        return self.logs / parse_bundle_hash(hash) / f"{parse_thread_id(thread_id)}{INFO_SUFFIX}"

    def private(self, thread_id: ThreadId) -> Path:
        """Return the directory for private files of a thread: its index, its record of processes,
        an agent's own files.
        """
        return self.work / f"{thread_id}.private"

    def journal_of(self, thread_id: ThreadId) -> Path | None:
        """Return the journal of the thread with this id, plain or archived; None if the store has
        none.
        """
        return next(self._journals_of(thread_id), None)

    def _journals_of(self, thread_id: ThreadId) -> Iterator[Path]:
        """Yield the journals of a thread, one for every bundle that has one; a copied file may be a
        second one.
        """
        for directory in self._thread_directories():
            plain = directory / f"{thread_id}{DATA_SUFFIX}"
            # again: it may be unpacked meanwhile
            for path in (plain, plain.with_name(plain.name + ARCHIVED_SUFFIX), plain):
                if path.exists():
                    yield path
                    break

    def holds(self, hash: BundleHash, thread_id: ThreadId) -> bool:
        """Tell whether the bundle's directory has the thread's journal, plain or archived."""
        plain = self.data_path(hash, thread_id)
        return plain.exists() or plain.with_name(plain.name + ARCHIVED_SUFFIX).exists()

    def mark_removed(self, hash: BundleHash, thread_id: ThreadId) -> None:
        """Write a durable marker that the thread was removed. It is written before the journal is
        deleted, so that a crash never leaves neither.
        """
        path = self.data_path(hash, thread_id).with_name(f"{thread_id}{REMOVED_SUFFIX}")
        if path.exists():
            sync_directory(path.parent)  # its writer may not have come as far as that
        else:
            _make_private(path.parent)
            write_atomically(path, b"")

    def was_removed(self, thread_id: ThreadId) -> bool:
        """Tell whether a thread has a marker and no journal."""
        name = f"{parse_thread_id(thread_id)}{REMOVED_SUFFIX}"
        return (
            any((directory / name).exists() for directory in self._thread_directories())
            and self.journal_of(thread_id) is None
        )

    def note_start(self, thread_id: ThreadId, *, by_thread: bool = False) -> None:
        """Append a new thread to the order of starts. by_thread: another thread starts it.

        A crash before its journal is written leaves an id without a thread, which readers skip.
        """
        order.append(
            self._order_path, f"{order.CHILD if by_thread else ''}{parse_thread_id(thread_id)}"
        )

    def note_taken_up(self, hash: BundleHash, thread_id: ThreadId) -> None:
        """Append that a worker took a journal up, or that it was put in its place; the caller holds
        its lock, and has not written yet.
        """
        order.append(
            self._order_path,
            f"{order.TAKEN_UP}{parse_bundle_hash(hash)}/{parse_thread_id(thread_id)}",
        )

    def noted_since(self, place: order.OrderPlace) -> order.OrderTail | None:
        """Return the log of order after *place*; None if it is another log by now."""
        return order.read_since(self._order_path, place)

    def start_order(self) -> dict[str, int]:
        """Return the place of each thread in the order of starts. Threads that are not in it
        started before all others.
        """
        return order.start_order(self._order_path)

    def child_threads(self) -> set[str]:
        """Return the threads that other threads started."""
        return order.children(self._order_path)

    @property
    def _order_path(self) -> Path:
        return self.logs / "order"

    def put_bundle(self, bundle: Bundle) -> None:
        """Store the bundle's bytes for good, and a copy of its descriptor for readers. Existing
        bytes are kept.

        Raises: as `put_source`.
        """
        self.put_source(bundle.source)
        copy = self.bundle_path(bundle.hash).with_suffix(".yaml")
        if not copy.exists():
            import yaml

            from .document import DUMPER

            text = yaml.dump(
                dict(bundle.descriptor.raw),
                Dumper=DUMPER,
                sort_keys=False,
                allow_unicode=True,
                width=120,
            )
            write_atomically(copy, text.encode())

    def put_source(self, source: bytes) -> BundleHash:
        """Store a bundle's bytes for good and return their hash. They are validated when they are
        loaded, not here.

        Raises:
            DamagedError: the file has other bytes with the same XXH64; they are not replaced.
        """
        hash = bundle_hash(source)
        path = self.bundle_path(hash)
        stored = read_if_there(path)
        if stored is None:
            write_atomically(path, source)
        elif stored == source:
            # crash here, at the former try: renamed, and the name not yet on disk
            sync_directory(self.bundles)
        else:
            raise DamagedError(
                f"{path} holds other bytes than the bundle that is to be stored under this hash; move that file away"
            )
        return hash

    def load_bundle(self, hash: BundleHash, known_effects: EffectKinds | None = None) -> Bundle:
        """Return the bundle with this hash; its bytes are hashed and validated again.

        Raises:
            NotFoundError: there is no such file.
            DamagedError: the file's bytes have another hash.
        """
        source = self.bundle_source(hash)
        from ..validation.validate import read_bundle  # not for a look-up of a flow or a thread

        return read_bundle(source) if known_effects is None else read_bundle(source, known_effects)

    def load_descriptor(self, hash: BundleHash, known_effects: EffectKinds) -> Descriptor:
        """Return the descriptor of the bundle with this hash, in half the time of `load_bundle`;
        its bytes are hashed again, and its code is not validated.

        Raises:
            NotFoundError, DamagedError: as `load_bundle`.
        """
        from ..validation.validate import read_descriptor

        return read_descriptor(self.bundle_source(hash), known_effects)

    def bundle_source(self, hash: BundleHash) -> bytes:
        """Return the bytes of the bundle with this hash, which are hashed again. Raises: as
        `load_bundle`.
        """
        path = self.bundle_path(hash)
        source = read_if_there(path)
        if source is None:
            raise NotFoundError(
                f"no bundle {hash} in {self.bundles}; 'uncaged-workflow list' shows what there is"
            )
        found = bundle_hash(source)
        if found != path.stem:
            raise DamagedError(
                f"{path}: its bytes have the hash {found}, the file was changed or damaged; put the original back"
            )
        return source

    def has_bundle(self, hash: BundleHash) -> bool:
        """Tell whether a bundle is stored."""
        return self.bundle_path(hash).exists()

    def find_bundles(self) -> list[BundleHash]:
        """Return the hashes of all stored bundles, in order."""
        with os.scandir(self.bundles) as entries:
            stems = [
                entry.name.removesuffix(".py") for entry in entries if entry.name.endswith(".py")
            ]
        return sorted(BundleHash(stem) for stem in stems if is_bundle_hash(stem))

    def find_threads(self) -> Iterator[tuple[BundleHash, ThreadId, Path]]:
        """Yield every thread with the path of its journal, plain or archived, in no particular
        order. Other files are skipped.
        """
        for hash, thread_id, path in self.find_journals():
            yield hash, thread_id, Path(path)

    def find_journals(self) -> Iterator[tuple[BundleHash, ThreadId, str]]:
        """Yield the same with paths as texts, in a tenth of the time."""
        for hash, names in self.list_logs():
            directory = f"{self.logs}/{hash}"
            for thread_id, name in journals_among(names):
                yield hash, thread_id, f"{directory}/{name}"

    def list_logs(self) -> Iterator[tuple[BundleHash, set[str]]]:
        """Yield the names of all files of threads, bundle by bundle; each directory is
        listed once.
        """
        for directory in self._thread_directories():
            yield BundleHash(directory.name), _names_in(directory)

    def _thread_directories(self) -> list[Path]:
        with os.scandir(self.logs) as directories:
            return [
                self.logs / entry.name
                for entry in directories
                if is_bundle_hash(entry.name) and entry.is_dir()
            ]

    def locate_thread(self, text: str) -> tuple[BundleHash, ThreadId, Path]:
        """Return the thread with this id, with the only id that has this start (in any case), or
        the ``latest``.

        Raises:
            UsageError: the text is empty, too long, or the start of several threads' ids; they are
                listed.
            NotFoundError: no thread's id starts with it, or none could.
        """
        whole = (
            list(self._journals_of(ThreadId(text.upper()))) if is_thread_id(text.upper()) else []
        )
        if len(whole) == 1:  # nothing needs to be listed
            return BundleHash(whole[0].parent.name), ThreadId(text.upper()), whole[0]
        return self.locate_threads([text])[0]

    def locate_threads(self, texts: Iterable[str]) -> list[tuple[BundleHash, ThreadId, Path]]:
        """Return the threads for several texts, in their order; the directories are listed once."""
        present: list[tuple[BundleHash, ThreadId, str]] = []
        return [self._located(text, present) for text in texts]

    def _located(
        self, text: str, present: list[tuple[BundleHash, ThreadId, str]]
    ) -> tuple[BundleHash, ThreadId, Path]:
        """Return one of the threads in *present*, which is filled when it is first needed."""
        if text == LATEST:
            return self._latest()
        if not text or len(text) > THREAD_ID_LENGTH:
            raise UsageError(
                f"{text[:80]!r} is neither a thread id, nor the start of one, nor {LATEST!r}"
            )
        prefix = text.upper()
        present.extend(() if present else self.find_journals())
        found = [thread for thread in present if thread[1].startswith(prefix)]
        if not found:
            raise NotFoundError(f"no thread {text!r}; 'uncaged-workflow threads' lists them")
        if len(found) > 1:
            names = sorted(thread_id for _, thread_id, _ in found)
            listed = ", ".join(names[:_SHOWN_CANDIDATES]) + (
                " …" if len(names) > _SHOWN_CANDIDATES else ""
            )
            raise UsageError(
                f"{text!r} is the start of {len(names)} thread ids: {listed}; type more of it"
            )
        hash, thread_id, place = found[0]
        return hash, thread_id, Path(place)

    def _latest(self) -> tuple[BundleHash, ThreadId, Path]:
        """Return the thread that was started last, and by no other thread: usually one of the last
        lines of the order, so that nothing is listed.

        If all threads are children of others, it is the child that was started last.
        """
        for thread_id in order.last_started(self._order_path):
            path = self.journal_of(thread_id)
            if path is not None:
                return BundleHash(path.parent.name), thread_id, path
        places, children = self.start_order(), self.child_threads()
        latest = max(
            self.find_threads(),
            key=lambda thread: (thread[1] not in children, places.get(thread[1], -1), thread[1]),
            default=None,
        )
        if latest is None:
            raise NotFoundError("there is no thread yet; 'uncaged-workflow run FLOW' starts one")
        return latest


def journals_among(names: Collection[str]) -> Iterator[tuple[ThreadId, str]]:
    """Yield the threads of one directory, each with the name of its journal, plain or archived.
    Other names are skipped.
    """
    for name in names:
        plain = name.removesuffix(ARCHIVED_SUFFIX)
        thread_id = plain.removesuffix(DATA_SUFFIX)
        # crash here: archived, the plain one not yet unlinked
        is_copy = plain != name and plain in names
        if thread_id != plain and is_thread_id(thread_id) and not is_copy:
            yield ThreadId(thread_id), name


def _names_in(directory: Path) -> set[str]:
    try:
        with os.scandir(directory) as entries:
            return {entry.name for entry in entries}
    except FileNotFoundError:
        return set()  # its last thread was removed meanwhile


def _make_private(directory: Path) -> None:
    """Create *directory* and its missing parents, for their owner alone."""
    missing = [path for path in (directory, *directory.parents) if not path.is_dir()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
