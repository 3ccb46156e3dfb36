"""Copy of a store into another one. A second run copies what is missing, and what has been appended
since.

A part is copied before what refers to it: bundles and blobs, threads, then the registry. A thread
is in the target whole, or with an exact prefix of its lines. What the target has with other
contents is left as it is, and becomes a problem of the report; the rest is copied all the same.
Registries are joined flow by flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.joining import JoinedRegistry, RegistryText, join_registries

from ..journal import chain
from ..journal.blobs import named_in
from ..journal.lines import END
from .protocol import (
    ChangedMeanwhile,
    LineOwner,
    StoreBackend,
    ThreadEntry,
    ThreadHead,
    ThreadNotes,
    VersionedBytes,
)
from .reading import KINDS, Progress, batches_of, entries_of, lines_of, noted_problem

_JOINS = 5
"""How often registries are joined while other processes change that of the target."""


@dataclass(slots=True)
class Copied:
    """Items of one kind; of the registry, flows. copied: made or continued in the target. present:
    they were there.
    """

    copied: int = 0
    present: int = 0


@dataclass(slots=True)
class CopyReport:
    """Result of a copy. counts: by kind. unfinished: number of the copied threads that have no end.
    grants: number of those that the target did not have. problems: a sentence for each item that
    was not copied.
    """

    counts: dict[str, Copied] = field(default_factory=lambda: {kind: Copied() for kind in KINDS})
    unfinished: int = 0
    grants: int = 0
    problems: list[str] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """Return it as JSON data."""
        counts = {
            kind: {"copied": one.copied, "present": one.present}
            for kind, one in self.counts.items()
        }
        return {
            **counts,
            "unfinished": self.unfinished,
            "grants": self.grants,
            "problems": self.problems,
        }


def copy_store(
    source: StoreBackend, target: StoreBackend, *, replace: bool, progress: Progress
) -> CopyReport:
    """Copy all of *source* into *target*.

    Args:
        replace: the source's documents, and entries of flows, replace other ones of the target.
    Raises:
        RefusedError: both are the same store, or one refuses this user. StorageError: a store
            cannot be read or written. Items copied so far stay, and the next run goes on there.
    """
    if source.address == target.address:
        raise RefusedError(f"{source.address} is both the source and the target")
    copy = _Copy(source, target, replace, progress)
    copy.bundles()
    copy.blobs()
    copy.threads()
    copy.conversations()
    copy.documents()
    copy.registry()
    return copy.report


class ThreadCopy:
    """Copies of single threads, with their bundles and blobs, and of the registry."""

    def __init__(self, source: StoreBackend, target: StoreBackend) -> None:
        self._copy = _Copy(source, target, replace=False, progress=lambda _kind, _count: None)

    def registry(self) -> list[str]:
        """Join the source's registry with the target's, with the bundles of its flows; return a
        sentence for each flow that the target has with other versions.
        """
        self._copy.bundles()
        self._copy.registry()
        return self._copy.report.problems

    def thread(self, entry: ThreadEntry) -> ThreadHead:
        """Copy a thread, and return its head in the target.

        Raises:
            RefusedError: the target has it with other lines. Others: as the stores' methods.
        """
        return self._copy.thread(entry)


class _Copy:
    """One run."""

    def __init__(
        self, source: StoreBackend, target: StoreBackend, replace: bool, progress: Progress
    ) -> None:
        self.report = CopyReport()
        self._source = source
        self._target = target
        self._replace = replace
        self._progress = progress
        self._last = b""  # line of the thread that was copied last

    def bundles(self) -> None:
        known = set(self._target.bundles.hashes())
        for hash in self._source.bundles.hashes():
            with self._item("bundles"):
                # also one that is there: its bytes may be other ones
                self._target.bundles.put(self._source.bundles.get(hash))
                self._count("bundles", copied=hash not in known)

    def blobs(self) -> None:
        known = set(self._target.blobs.names())
        for name in self._source.blobs.names():
            with self._item("blobs"):
                if name not in known:
                    self._target.blobs.put(self._source.blobs.get(name))
                self._count("blobs", copied=name not in known)

    def threads(self) -> None:
        marked = set(self._target.threads.removed())
        added = set(self._source.threads.removed()) - marked
        for bundle, thread in added:
            self._target.threads.mark_removed(bundle, thread)
        pinned = set(self._source.threads.pinned())
        for entry in entries_of(self._source.threads):
            with self._item("threads"):
                self._last = b""
                is_own = (entry.bundle, entry.id) in added  # the source has marker and lines
                self._count("threads", copied=self._thread(entry, heeds_marker=not is_own))
                if self._last and not self._last.startswith(END):
                    self.report.unfinished += 1
                if (entry.bundle, entry.id) in pinned:
                    with suppress(NotFoundError):  # the target has a marker of it
                        self._target.threads.set_pinned(entry.bundle, entry.id, pinned=True)

    def conversations(self) -> None:
        known = set(self._target.conversations.names())
        for name in self._source.conversations.names():
            with self._item("conversations"):
                self._count("conversations", copied=self._conversation(name, name in known))

    def documents(self) -> None:
        documents = self._target.documents
        for name in self._source.documents.names():
            with self._item("documents"):
                found = self._source.documents.read(name)
                if found is None:
                    continue  # it was removed meanwhile
                present = documents.read(name)
                if self._writes(name, found, present):
                    documents.replace(name, found.data, version=_version(present))

    def registry(self) -> None:
        with self._item("registry"):
            found = self._source.registry.read()
            if found is None:
                return
            joined = self._joined(found)
            self.report.grants = joined.grants
            self.report.problems += [f"registry: {problem}" for problem in joined.problems]
            counts = self.report.counts["registry"]
            counts.copied, counts.present = joined.copied, joined.present
            self._progress("registry", joined.copied + joined.present)

    def _joined(self, found: VersionedBytes) -> JoinedRegistry:
        """Join the source's registry with the target's, and write it."""
        source = RegistryText(text=found.data, where=f"registry of {self._source.address}")
        for _ in range(_JOINS):
            present = self._target.registry.read()
            target = RegistryText(
                text=b"" if present is None else present.data,
                where=f"registry of {self._target.address}",
            )
            joined = join_registries(source, target, replace=self._replace)
            with suppress(ChangedMeanwhile):
                if joined.text != target.text:
                    self._target.registry.replace(joined.text, version=_version(present))
                return joined
        raise ChangedMeanwhile(
            f"the registry of {self._target.address} is changed again and again; copy once more"
        )

    def _writes(self, name: str, found: VersionedBytes, present: VersionedBytes | None) -> bool:
        """Count a document, and tell whether it is to be written."""
        is_same = present is not None and present.data == found.data
        if present is not None and not is_same and not self._replace:
            raise RefusedError(
                f"{name} differs from that of {self._target.address}, which was left as it is; --replace writes it anew"
            )
        self._count("documents", copied=not is_same)
        return not is_same

    def thread(self, entry: ThreadEntry) -> ThreadHead:
        """Copy one thread with what it needs; return its head in the target."""
        self._target.bundles.put(self._source.bundles.get(entry.bundle))
        named: set[str] = set()
        for line in lines_of(self._source.threads, entry.bundle, entry.id):
            named |= named_in(line)
        for name in sorted(named):
            self._target.blobs.put(self._source.blobs.get(name))
        self._thread(entry, heeds_marker=False)
        return self._target.threads.head(entry.bundle, entry.id)

    def _thread(self, entry: ThreadEntry, *, heeds_marker: bool) -> bool:
        """Copy a thread; return False if it was there. heeds_marker: nor one that was removed."""
        threads, bundle, id = self._target.threads, entry.bundle, entry.id
        notes = self._source.threads.notes(bundle, id)
        present: ThreadHead | None = None
        with suppress(NotFoundError):
            present = threads.head(bundle, id)
        if present is None:
            # asked after the head: a thread that is removed meanwhile has its marker by now
            if heeds_marker and threads.is_removed(bundle, id):
                return False
            threads.start(entry, self._lines(entry, 0), notes)
            return True
        kept = threads.notes(bundle, id)
        if kept.origin != notes.origin:
            raise self._other_origin(id, notes, kept)
        head = self._source.threads.head(bundle, id)
        if head != present:
            self._require_prefix(entry, head, present)
        if head.lines < present.lines:
            return False  # it went on there
        if head.lines > present.lines:
            with threads.open(bundle, id) as owner:
                _append(owner, self._lines(entry, owner.head.lines))
        self._notes(entry, notes, kept)
        return head != present

    def _notes(self, entry: ThreadEntry, notes: ThreadNotes, kept: ThreadNotes) -> None:
        """Bring what is beside the lines up to date."""
        threads = self._target.threads
        if notes.info != kept.info and notes.info.startswith(kept.info):
            threads.replace_info(entry.bundle, entry.id, notes.info)
        if entry.archived:
            threads.archive(entry.bundle, entry.id)

    def _require_prefix(self, entry: ThreadEntry, head: ThreadHead, present: ThreadHead) -> None:
        """Refuse a thread unless one store has the first lines of the other."""
        shorter = min(head, present, key=lambda one: one.lines)
        longer = self._source if head.lines > present.lines else self._target
        at = longer.threads.read(entry.bundle, entry.id, from_line=shorter.lines - 1, limit=1)
        if not at or chain.stated(at[0]) != shorter.digest:
            raise self._differs(f"thread {entry.id}", "other lines")

    def _lines(self, entry: ThreadEntry, start: int) -> Iterator[bytes]:
        for line in lines_of(self._source.threads, entry.bundle, entry.id, from_line=start):
            self._last = line
            yield line

    def _conversation(self, name: str, known: bool) -> bool:
        """Copy a conversation; return False if it was there."""
        lines = self._source.conversations.read(name)
        if not known:
            self._target.conversations.start(name, lines)
            return True
        present = self._target.conversations.read(name)
        size = min(len(lines), len(present))
        if lines[:size] != present[:size]:
            raise self._differs(f"conversation {name}", "other lines")
        if len(lines) <= len(present):
            return False
        with self._target.conversations.open(name) as owner:
            _append(owner, iter(lines[owner.head.lines :]))
        return True

    def _other_origin(self, id: ThreadId, notes: ThreadNotes, kept: ThreadNotes) -> RefusedError:
        """Return the error of a thread that the two stores do not trust alike."""
        source, target = self._source.address, self._target.address
        if notes.origin is None or kept.origin is None:
            imported, started = (source, target) if kept.origin is None else (target, source)
            how = f"was imported from a file in {imported}, but counts as started by its owners in {started}"
        else:
            how = f"was imported from a file in {source} and in {target} separately"
        return RefusedError(
            f"thread {id} {how}; it was left as it is in both. Remove it in one of them "
            f"(`uncaged-workflow thread rm {id}` in a directory), then copy from the other one"
        )

    def _differs(self, what: str, how: str) -> RefusedError:
        return RefusedError(
            f"{what} has {how} in {self._target.address}; it was left as it is there"
        )

    def _count(self, kind: str, *, copied: bool) -> None:
        found = self.report.counts[kind]
        if copied:
            found.copied += 1
        else:
            found.present += 1
        self._progress(kind, found.copied + found.present)

    def _item(self, kind: str) -> AbstractContextManager[None]:
        return noted_problem(kind, self.report.problems)


def _append(owner: LineOwner, lines: Iterator[bytes]) -> None:
    """Append lines in batches, so that a large thread is not held in memory."""
    for batch in batches_of(lines):
        owner.append(batch)


def _version(found: VersionedBytes | None) -> str | None:
    return None if found is None else found.version
