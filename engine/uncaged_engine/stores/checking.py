"""Check of a whole store: each hash, each chain, and whether what is referred to is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.storage.document import Document
from uncaged_bundles.storage.snapshot import read_document

from ..journal.blobs import named_in
from ..journal.origin import parse_origin
from ..journal.recover import recover_strictly
from .protocol import StoreBackend, ThreadEntry
from .reading import KINDS, Progress, entries_of, lines_of, noted_problem

Name = TypeVar("Name")


@dataclass(slots=True)
class CheckReport:
    """Result of a check. counts: items by kind, and ``lines`` of threads. problems: a sentence for
    each.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*KINDS, "lines"), 0))
    problems: list[str] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """Return it as JSON data."""
        return {**self.counts, "problems": self.problems}


def check_store(store: StoreBackend, *, progress: Progress) -> CheckReport:
    """Read all of a store.

    Raises:
        StorageError: it cannot be read.
    """
    check = _Check(store, progress)
    check.each("bundles", store.bundles.hashes(), store.bundles.get)
    check.each("blobs", store.blobs.names(), store.blobs.get)
    check.threads()
    check.each("conversations", store.conversations.names(), store.conversations.read)
    check.each("documents", store.documents.names(), store.documents.read)
    check.registry()
    return check.report


class _Check:
    """One run."""

    def __init__(self, store: StoreBackend, progress: Progress) -> None:
        self.report = CheckReport()
        self._store = store
        self._progress = progress
        self._bundles = set(store.bundles.hashes())
        self._blobs = set(store.blobs.names())

    def each(self, kind: str, names: Iterable[Name], read: Callable[[Name], object]) -> None:
        """Read the items of one kind, which checks them."""
        for name in names:
            with self._item(kind):
                read(name)

    def threads(self) -> None:
        for entry in entries_of(self._store.threads):
            with self._item("threads"):
                self._thread(entry)

    def _thread(self, entry: ThreadEntry) -> None:
        lines = list(lines_of(self._store.threads, entry.bundle, entry.id))
        self.report.counts["lines"] += len(lines)
        data = b"".join(lines)
        history = recover_strictly(data, entry.bundle, entry.id)
        if history.damage is not None:
            raise DamagedError(
                f"thread {entry.id}, line {history.damage.line}: {history.damage.reason}"
            )
        origin = self._store.threads.notes(entry.bundle, entry.id).origin
        if origin is not None:
            parse_origin(origin, f"the origin of thread {entry.id}")
        if entry.bundle not in self._bundles:
            raise NotFoundError(f"thread {entry.id}: its bundle {entry.bundle} is missing")
        if lacking := sorted(named_in(data) - self._blobs):
            raise NotFoundError(f"thread {entry.id}: blob {lacking[0]} is missing")

    def registry(self) -> None:
        found = self._store.registry.read()
        if found is None:
            return
        with self._item("registry"):
            snapshot, _ = read_document(Document.parse(found.data, "registry"), "registry")
            self.report.problems += snapshot.problems
            for flow in snapshot.flows.values():
                if lacking := {version.hash for version in flow.versions} - self._bundles:
                    self.report.problems.append(
                        f"registry: bundle {min(lacking)} of the flow {flow.name!r} is missing"
                    )

    def _item(self, kind: str) -> AbstractContextManager[None]:
        """Count an item, and note its own problem."""
        self.report.counts[kind] += 1
        self._progress(kind, self.report.counts[kind])
        return noted_problem(kind, self.report.problems)
