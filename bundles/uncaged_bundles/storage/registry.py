"""Registry of flows: names, versions and grants of a store, in ``workflow.yaml`` and its index.

A read takes no lock unless it rebuilds the index. A change is made under ``workflow.yaml.lock`` and
written whole or not at all; then the index follows it.
"""

from __future__ import annotations

import os
import re
import time

# not hashlib: it loads OpenSSL, which costs every start two milliseconds
from _blake2 import blake2b
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ..errors import NotFoundError, RefusedError, StorageError, UsageError
from ..ids import ALPHABET, HASH_LENGTH, BundleHash, base32_bytes, parse_bundle_hash
from ..names import FlowName, parse_flow_name
from ..records import replace
from .entries import RegistryChanges, changes_of, changes_since, find_flow, is_granted, snapshot_of
from .files import (
    changing,
    read_if_there,
    remove_stale_temporaries,
    sync_directory,
    write_atomically,
)
from .index import Index, IndexMismatch, digest, opened, stamp_of, write_index
from .snapshot import FLOWS, GRANTS, REMOVED, SEEDED, Flow, Snapshot, Version
from .store import Store

if TYPE_CHECKING:
    from ..validation.validate import Bundle
    from .draft import RegistryDraft

__all__ = [
    "Flow",
    "HeadMovedError",
    "Registry",
    "RegistryChanges",
    "Snapshot",
    "Version",
    "digest_of",
]

LOCK_TIMEOUT_S = 120.0
READ_TIMEOUT_S = 5.0
"""How long a reader waits for the one who changes the text or rebuilds its index, before it reads
the text for itself.
"""
_STALE_AFTER_S = 600.0
_SHORTEST_PREFIX = 4
_UNSUPPORTED = re.compile(rb'^    "unsupported": "([a-z]+)",$', re.MULTILINE)
"""As the builder writes it, so that indexing ten thousand flows parses none of them."""

T = TypeVar("T")


class HeadMovedError(RefusedError):
    """A flow has another head than the one that was to be replaced."""


class Registry:
    """The flows of one store. Holds no file open and keeps nothing in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.registry_path
        self._index_path = store.registry_path.with_suffix(".index")
        self._where = str(self._path)
        """The text's name in messages."""

    def read(self) -> Snapshot:
        """Return the whole registry. A missing or blank file is an empty one; entries that cannot
        be read become problems.
        """
        return self._ask(snapshot_of)

    def flow(self, name: str) -> Flow | None:
        """Return one flow, enabled or not; None if there is none, or its entry cannot be read."""
        return self._ask(lambda index: find_flow(index, name))

    def entry(self, name: str) -> Flow:
        """Return a flow, enabled or not.

        Raises:
            NotFoundError: no flow has that name; the message has the closest names.
        """
        found = self.flow(name)
        if found is None:
            raise _unknown(self.names(), name)
        return found

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the flows that begin with *prefix*."""
        return self._ask(lambda index: [row.key for row in index.rows(FLOWS, prefix)])

    def seeded(self) -> frozenset[str]:
        """Return the keys of the shipped flows that were added; see `seed`."""
        return self._ask(lambda index: frozenset(index.head.seeded))

    def indexed_flow(self, name: str) -> Flow | None:
        """Return a flow if the index has it, without rebuilding the index."""
        try:
            with opened(self._index_path, self._path) as index:
                return find_flow(index, name)
        except (IndexMismatch, OSError):
            return None

    def state(self) -> str:
        """Return a digest of the registry's text: another one after each change. Reads no entry."""
        return self._ask(lambda index: index.head.text)

    def changes(self, known: Collection[str]) -> RegistryChanges:
        """Return the readable flows whose entries are not known, for a reader that keeps the seals
        of those that it has seen. Only these entries are parsed.
        """
        return self._ask(lambda index: changes_of(index, known))

    def changes_since(
        self, state: object, known: Callable[[], Collection[str]]
    ) -> RegistryChanges | None:
        """Return the changes since a `state`, None if the text still has it; of a change that the
        index knows without a comparison of all entries.

        Args:
            known: returns the seals for that comparison.
        """
        return self._ask(
            lambda index: None if index.head.text == state else changes_since(index, state, known)
        )

    def add(
        self,
        name: str,
        bundle: Bundle,
        *,
        now_ms: int,
        source: str = "person",
        granted: bool = False,
        confirm: bool | None = None,
        replacing: BundleHash | None = None,
    ) -> bool:
        """Store the bundle and make it the head of *name*; the former head becomes the newest entry
        of its history.

        Args:
            granted: record the grant of the bundle's policy in the same write. confirm: the mark of
                the new version (`set_confirm`); None keeps that of the former. replacing: the head
                that the flow must have; None takes any.
        Returns:
            False if the bundle is the head already; the flow is unchanged then.
        Raises:
            HeadMovedError: the flow has another head than *replacing*, or is gone.
        """
        flow_name = parse_flow_name(name)

        def change(draft: RegistryDraft) -> bool:
            _refuse_unreadable(draft.unreadable(flow_name), flow_name)
            head = draft.flow(flow_name)
            if replacing is not None and (head is None or head.hash != replacing):
                raise HeadMovedError(
                    f"{flow_name!r} is {'removed' if head is None else head.hash} by now, not {replacing}"
                )
            self._store.put_bundle(bundle)
            self._clean(now_ms)
            if granted:
                draft.put(GRANTS, bundle.hash, _grant_of(bundle))
            flow = draft.flow(flow_name)
            if flow is not None and flow.hash == bundle.hash:
                return False
            if flow is None:
                flow = _new_flow(flow_name, bundle, now_ms, source)
            else:
                former = tuple(
                    version for version in (flow.head, *flow.history) if version.hash != bundle.hash
                )
                flow = replace(
                    flow, hash=bundle.hash, timestamp_ms=now_ms, history=former, source=source
                )
            mark = {} if confirm is None else {"confirm": confirm}
            draft.put(FLOWS, flow_name, {**flow.fields(), **mark})
            return True

        return self._change(change)

    def grant(self, bundle: Bundle) -> None:
        """Record a person's consent to this bundle's policy."""
        self._change(lambda draft: draft.put(GRANTS, bundle.hash, _grant_of(bundle)))

    def granted(self, bundle: Bundle) -> bool:
        """Tell whether the bundle may perform its effects: it has no policy, or a person granted
        exactly these bytes.

        The hash finds the grant; a digest of the bytes confirms it, since other bytes with the same
        XXH64 can be made on purpose.
        """
        from ..policy import is_pure  # 4 ms, which a look-up of a name does without

        if is_pure(bundle.descriptor.policy):
            return True
        return self._ask(lambda index: is_granted(index, bundle.hash, digest_of(bundle)))

    def rollback(self, name: str, hash: BundleHash | None = None) -> Flow:
        """Make a former head the head again (the newest one unless *hash* says which); it keeps its
        own timestamp.

        Raises:
            RefusedError: there is no former version, or it is the head already.
            NotFoundError: no such flow, the hash is not in its history, or the bundle's file is
                gone.
        """

        def change(draft: RegistryDraft) -> Flow:
            flow = _flow_of(draft, name)
            target = _former(flow, hash)
            if not self._store.has_bundle(target.hash):
                raise NotFoundError(
                    f"the bundle {target.hash} of {name!r} is no longer in {self._store.bundles}; put its file back first"
                )
            former = (
                flow.head,
                *(version for version in flow.history if version.hash != target.hash),
            )
            flow = replace(flow, hash=target.hash, timestamp_ms=target.timestamp_ms, history=former)
            draft.put(FLOWS, flow.name, flow.fields())
            return flow

        return self._change(change)

    def remove(self, name: str) -> None:
        """Remove a flow, a malformed entry included, and note its name, so that `seed` does not add
        it again. Bundles, journals and grants are kept.
        """

        def change(draft: RegistryDraft) -> None:
            if name not in draft.names():
                raise _unknown(draft.names(), name)
            draft.drop(FLOWS, name)
            draft.put_top(REMOVED, sorted(draft.removed() | {name}))

        self._change(change)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Allow or forbid a flow to start threads."""
        fields = {"enabled": enabled}
        self._change(lambda draft: draft.put(FLOWS, _flow_of(draft, name).name, fields))

    def set_confirm(self, name: str, confirm: bool) -> None:
        """Mark a flow, so that a sentence runs it only if a person agrees, or remove the mark."""
        fields = {"confirm": confirm}
        self._change(lambda draft: draft.put(FLOWS, _flow_of(draft, name).name, fields))

    def resolve(self, text: str) -> tuple[FlowName | None, BundleHash]:
        """Return the bundle that a person named: by a flow's name, else by a stored bundle's hash
        or its start (at least four digits).

        Raises:
            RefusedError: the flow is disabled or its entry cannot be read.
            NotFoundError: neither; the message has the closest names.
        """
        flow, problem = self._ask(
            lambda index: (find_flow(index, text), index.head.unreadable.get(text))
        )
        if flow is not None:
            if not flow.enabled:
                raise RefusedError(
                    f"flow {text!r} is disabled; 'uncaged-workflow enable {text}' brings it back"
                )
            return flow.name, flow.hash
        _refuse_unreadable(problem, text)
        stored = (
            [hash for hash in self._store.find_bundles() if hash.startswith(text.upper())]
            if _may_start(text)
            else []
        )
        if len(stored) > 1:
            raise UsageError(
                f"{text!r} is the start of {len(stored)} bundle hashes: {', '.join(stored[:10])}; type more of it"
            )
        if not stored:
            raise _unknown(self.names(), text)
        return None, stored[0]

    def seed(
        self,
        key: str,
        flows: Callable[[], Iterable[tuple[FlowName, Bundle]]],
        *,
        now_ms: int,
        confirm: Collection[str] = (),
    ) -> None:
        """Add shipped flows, granted, once per *key*, except names that are taken and names that a
        person removed.

        Args:
            confirm: names of flows that a sentence runs only after a person agreed.
        """
        if key in self.seeded():
            return

        def change(draft: RegistryDraft) -> None:
            if key in draft.seeded():
                return  # another process was quicker
            reserved = draft.names() | draft.removed()
            entries: list[tuple[str, str, Mapping[str, object]]] = []
            for name, bundle in flows():
                if name not in reserved:
                    self._store.put_bundle(bundle)
                    flow = _new_flow(parse_flow_name(name), bundle, now_ms, "sample")
                    entries += [
                        (GRANTS, bundle.hash, _grant_of(bundle)),
                        (FLOWS, flow.name, replace(flow, confirm=name in confirm).fields()),
                    ]
            draft.put_all(entries, top={SEEDED: sorted({*draft.seeded(), key})})

        self._change(change)

    def _ask(self, question: Callable[[Index], T]) -> T:
        """Return the answer of an index that matches the text; it is rebuilt first if necessary."""
        try:
            with opened(self._index_path, self._path) as index:
                return question(index)
        except IndexMismatch:
            pass
        except FileNotFoundError:
            return question(self._draft(b"").as_index())
        except OSError as exc:
            raise StorageError(f"cannot read {self._path}: {exc.strerror or exc}") from exc
        try:
            with changing(self._path, timeout_s=READ_TIMEOUT_S):
                with suppress(IndexMismatch), opened(self._index_path, self._path) as index:
                    return question(index)  # another process was quicker
                return question(self._rebuilt())
        except (OSError, RefusedError):  # a read-only store, or a change that takes long
            return question(self._draft(read_if_there(self._path) or b"").as_index())

    def _rebuilt(self) -> Index:
        """Write the index of the current text and return it; the caller holds the lock."""
        taken_ns = time.time_ns()
        with self._path.open("rb") as file:
            stamp = stamp_of(os.fstat(file.fileno()))
            text = file.read()
        head, rows = self._draft(text).index(stamp)
        write_index(self._index_path, head, rows, taken_ns=taken_ns)
        return Index.of(head, rows, text)

    def _change(self, change: Callable[[RegistryDraft], T]) -> T:
        """Make a change on a draft of the registry under its lock, write the draft if it was
        changed, and return what *change* returns. The lock file is kept.
        """
        path = self._path
        try:
            with changing(path, timeout_s=LOCK_TIMEOUT_S):
                former = read_if_there(path) or b""
                draft = self._begun(former)
                found = change(draft)
                if draft.text == former:
                    # a former try may have renamed the file and failed there
                    sync_directory(path.parent)
                else:
                    self._write(draft)
        except OSError as exc:
            raise StorageError(f"cannot change {path}: {exc.strerror or exc}") from exc
        return found

    def _begun(self, text: bytes) -> RegistryDraft:
        """Return a draft of *text*, with the rows of its index if there is one, or else parsed."""
        with (
            suppress(IndexMismatch, FileNotFoundError),
            opened(self._index_path, self._path) as index,
        ):
            if index.head.text == digest(text):
                return self._draft(text, index)
        return self._draft(text)

    def _write(self, draft: RegistryDraft) -> None:
        """Write the text and its index; the caller holds the lock."""
        taken_ns = time.time_ns()
        found = write_atomically(self._path, draft.text)
        # crash here: the index is the former text's, and is rebuilt by the next reader
        write_index(self._index_path, *draft.index(stamp_of(found)), taken_ns=taken_ns)

    def _draft(self, text: bytes, index: Index | None = None) -> RegistryDraft:
        from .draft import RegistryDraft

        return (
            RegistryDraft(text, self._where, self._language)
            if index is None
            else RegistryDraft.of(text, self._where, self._language, index)
        )

    def _language(self, hash: BundleHash) -> str | None:
        """Return the language of a flow that is kept and not run."""
        try:
            found = _UNSUPPORTED.search(self._store.bundle_path(hash).read_bytes())
        except OSError:
            return None
        return None if found is None else found[1].decode()

    def _clean(self, now_ms: int) -> None:
        for directory in (self._store.root, self._store.bundles):
            remove_stale_temporaries(directory, now_ms / 1000 - _STALE_AFTER_S)


def _flow_of(draft: RegistryDraft, name: str) -> Flow:
    _refuse_unreadable(draft.unreadable(name), name)
    flow = draft.flow(name)
    if flow is None:
        raise _unknown(draft.names(), name)
    return flow


def _refuse_unreadable(problem: str | None, name: str) -> None:
    if problem is not None:
        raise RefusedError(
            f"the entry of {name!r} cannot be read ({problem}); correct it there, or 'uncaged-workflow remove {name}'"
        )


def _unknown(names: Iterable[str], name: str) -> NotFoundError:
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), names, n=3)
    hint = (
        f"; did you mean {' or '.join(map(repr, close))}?"
        if close
        else "; 'uncaged-workflow list' shows all"
    )
    return NotFoundError(f"no flow {name[:80]!r}{hint}")


def _new_flow(name: FlowName, bundle: Bundle, now_ms: int, source: str) -> Flow:
    return Flow(
        name=name,
        hash=bundle.hash,
        timestamp_ms=now_ms,
        history=(),
        enabled=True,
        source=source,
        created_ms=now_ms,
    )


def _former(flow: Flow, hash: BundleHash | None) -> Version:
    if hash is None:
        if not flow.history:
            raise RefusedError(f"{flow.name!r} has no former version to go back to")
        return flow.history[0]
    target = parse_bundle_hash(hash)
    if target == flow.hash:
        raise RefusedError(f"{target} is the head of {flow.name!r} already")
    for version in flow.history:
        if version.hash == target:
            return version
    known = ", ".join(version.hash for version in flow.history) or "nothing"
    raise NotFoundError(f"{target} is not in the history of {flow.name!r}, which holds {known}")


def _grant_of(bundle: Bundle) -> Mapping[str, object]:
    return {"policy": bundle.descriptor.raw.get("policy", {}), "digest": digest_of(bundle)}


def digest_of(bundle: Bundle) -> str:
    """Return the digest by which a grant identifies a bundle's bytes."""
    return base32_bytes(blake2b(bundle.source, digest_size=16).digest())


def _may_start(text: str) -> bool:
    return _SHORTEST_PREFIX <= len(text) <= HASH_LENGTH and all(
        character in ALPHABET for character in text.upper()
    )
