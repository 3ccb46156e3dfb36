"""A name points to a bundle because the registry says so, and no two writers, nor a killed one, ever lose an entry of it."""

from __future__ import annotations

from _blake2 import blake2b  # not hashlib: it loads OpenSSL, which costs every start two milliseconds
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import NotFoundError, RefusedError, StorageError, UsageError
from ..ids import ALPHABET, HASH_LENGTH, BundleHash, base32_bytes, parse_bundle_hash
from ..names import FlowName, parse_flow_name
from ..policy import is_pure
from .files import read_if_there, remove_stale_temporaries, sync_directory, write_atomically
from .snapshot import FLOWS, GRANTS, REMOVED, SEEDED, Flow, Snapshot, Version, removed_names
from .store import Store

if TYPE_CHECKING:
    from ..validation.validate import Bundle
    from .document import Document

__all__ = ["Flow", "Registry", "Snapshot", "Version"]

LOCK_TIMEOUT_S = 120.0
_LOCK_POLL_S = 0.03
_STALE_AFTER_S = 600.0
_SHORTEST_PREFIX = 4


class Registry:
    """The flows of one store: reads without a lock, changes under ``workflow.yaml.lock``, each written whole or not at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._where = str(store.registry_path)
        self._seen: tuple[bytes, Document, Snapshot] | None = None

    def read(self) -> Snapshot:
        """The registry as it is now. A missing or blank file is an empty one; entries that cannot be read become problems."""
        return self._look()[1]

    def add(self, name: str, bundle: Bundle, *, now_ms: int, source: str = "person", granted: bool = False) -> bool:
        """Store the bundle and make it the head of *name*; the former head becomes the newest entry of its history.

        Args:
            granted: record the grant of the bundle's policy in the same write.
        Returns:
            False when the bundle is the head already; nothing of the flow changes then.
        """
        flow_name = parse_flow_name(name)
        with self._changing() as document:
            snapshot = Snapshot.of(document, self._where)
            self._refuse_unreadable(document, snapshot, flow_name)
            self._store.put_bundle(bundle)
            self._clean(now_ms)
            if granted:
                _put_grant(document, bundle)
            flow = snapshot.flows.get(flow_name)
            if flow is not None and flow.hash == bundle.hash:
                return False
            if flow is None:
                flow = _new_flow(flow_name, bundle, now_ms, source)
            else:
                former = tuple(version for version in (flow.head, *flow.history) if version.hash != bundle.hash)
                flow = replace(flow, hash=bundle.hash, timestamp_ms=now_ms, history=former, source=source)
            document.put(FLOWS, flow_name, flow.fields())
            return True

    def grant(self, bundle: Bundle) -> None:
        """Remember a person's yes to this bundle's policy."""
        with self._changing() as document:
            _put_grant(document, bundle)

    def granted(self, bundle: Bundle) -> bool:
        """Whether the bundle may do what it asks for: it asks for nothing, or a person said yes to exactly these bytes.

        The hash finds the grant; a digest of the bytes confirms it, since other bytes with the same XXH64 can be made on purpose.
        """
        if is_pure(bundle.descriptor.policy):
            return True
        grant = self.read().grants.get(bundle.hash)
        return grant is not None and grant["digest"] == _digest(bundle)

    def rollback(self, name: str, hash: BundleHash | None = None) -> Flow:
        """Make a former head the head again (the newest one unless *hash* says which); it keeps its own timestamp.

        Raises:
            RefusedError: there is no former version, or it is the head already.
            NotFoundError: no such flow, the hash is not in its history, or the bundle's file is gone.
        """
        with self._changing() as document:
            flow = self._flow(document, name)
            target = _former(flow, hash)
            if not self._store.bundle_path(target.hash).exists():
                raise NotFoundError(f"the bundle {target.hash} of {name!r} is no longer in {self._store.bundles}; put its file back first")
            former = (flow.head, *(version for version in flow.history if version.hash != target.hash))
            flow = replace(flow, hash=target.hash, timestamp_ms=target.timestamp_ms, history=former)
            document.put(FLOWS, flow.name, flow.fields())
            return flow

    def remove(self, name: str) -> None:
        """Forget the name, a malformed entry included, and that it was wanted away. Bundles, journals and grants stay."""
        with self._changing() as document:
            if name not in [entry.key for entry in document.section(FLOWS)]:
                raise self._unknown(Snapshot.of(document, self._where), name)
            document.drop(FLOWS, name)
            document.put_top(REMOVED, sorted(removed_names(document, self._where) | {name}))

    def set_enabled(self, name: str, enabled: bool) -> None:
        with self._changing() as document:
            document.put(FLOWS, self._flow(document, name).name, {"enabled": enabled})

    def resolve(self, text: str) -> tuple[FlowName | None, BundleHash]:
        """What a person meant: a flow's name, else a stored bundle's hash or the start of one (four digits at least).

        Raises:
            RefusedError: the flow is disabled or its entry cannot be read.
            NotFoundError: neither; the message has the closest names.
        """
        document, snapshot = self._look()
        flow = snapshot.flows.get(text)
        if flow is not None:
            if not flow.enabled:
                raise RefusedError(f"flow {text!r} is disabled; 'uncaged-workflow enable {text}' brings it back")
            return flow.name, flow.hash
        self._refuse_unreadable(document, snapshot, text)
        stored = [hash for hash in self._store.find_bundles() if _may_start(text) and hash.startswith(text.upper())]
        if len(stored) > 1:
            raise UsageError(f"{text!r} is the start of {len(stored)} bundle hashes: {', '.join(stored[:10])}; type more of it")
        if not stored:
            raise self._unknown(snapshot, text)
        return None, stored[0]

    def seed(self, key: str, flows: Callable[[], Iterable[tuple[FlowName, Bundle]]], *, now_ms: int) -> None:
        """Once per *key*: add these shipped flows, granted, except names that are taken and names that a person removed."""
        if key in self.read().seeded:
            return
        with self._changing() as document:
            snapshot = Snapshot.of(document, self._where)
            if key in snapshot.seeded:
                return  # another process was quicker
            taken = {entry.key for entry in document.section(FLOWS)} | removed_names(document, self._where)
            for name, bundle in flows():
                if name not in taken:
                    self._store.put_bundle(bundle)
                    _put_grant(document, bundle)
                    document.put(FLOWS, parse_flow_name(name), _new_flow(name, bundle, now_ms, "sample").fields())
            document.put_top(SEEDED, sorted({*snapshot.seeded, key}))

    @contextmanager
    def _changing(self) -> Iterator[Document]:
        """The registry's document under its lock; written when the block ends well and has changed it. The lock file itself stays."""
        from filelock import FileLock, Timeout

        path = self._store.registry_path
        lock = FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S, poll_interval=_LOCK_POLL_S)
        try:
            with lock:
                document = self._load()
                former = document.encode()  # not the file's own bytes: what a person only spelled otherwise is no change
                yield document
                if document.encode() != former:
                    write_atomically(path, document.rewritten())
                else:
                    sync_directory(path.parent)  # a former try may have renamed the file and failed there
        except Timeout as exc:
            raise RefusedError(f"{path} is being changed by another process for more than {LOCK_TIMEOUT_S:.0f} s; try again") from exc
        except OSError as exc:
            raise StorageError(f"cannot change {path}: {exc.strerror or exc}") from exc

    def _look(self) -> tuple[Document, Snapshot]:
        """The registry for reading only; the same bytes are not parsed again."""
        data = self._bytes()
        if self._seen is None or self._seen[0] != data:
            document = self._parsed(data)
            self._seen = data, document, Snapshot.of(document, self._where)
        return self._seen[1:]

    def _load(self) -> Document:
        """The registry for changing it."""
        return self._parsed(self._bytes())

    def _parsed(self, data: bytes) -> Document:
        from .document import Document

        return Document.parse(data, self._where)

    def _bytes(self) -> bytes:
        return read_if_there(self._store.registry_path) or b""

    def _flow(self, document: Document, name: str) -> Flow:
        snapshot = Snapshot.of(document, self._where)
        self._refuse_unreadable(document, snapshot, name)
        if name not in snapshot.flows:
            raise self._unknown(snapshot, name)
        return snapshot.flows[name]

    def _refuse_unreadable(self, document: Document, snapshot: Snapshot, name: str) -> None:
        for entry in document.section(FLOWS):
            if entry.key == name and name not in snapshot.flows:
                problem = next((problem for problem in snapshot.problems if f":{entry.line}: " in problem), "")
                raise RefusedError(f"the entry of {name!r} cannot be read ({problem}); mend it there, or 'uncaged-workflow remove {name}'")

    def _unknown(self, snapshot: Snapshot, name: str) -> NotFoundError:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), snapshot.flows, n=3)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "; 'uncaged-workflow list' shows all"
        return NotFoundError(f"no flow {name[:80]!r}{hint}")

    def _clean(self, now_ms: int) -> None:
        for directory in (self._store.root, self._store.bundles):
            remove_stale_temporaries(directory, now_ms / 1000 - _STALE_AFTER_S)


def _new_flow(name: FlowName, bundle: Bundle, now_ms: int, source: str) -> Flow:
    return Flow(name=name, hash=bundle.hash, timestamp_ms=now_ms, history=(), enabled=True, source=source, created_ms=now_ms)


def _former(flow: Flow, hash: BundleHash | None) -> Version:
    if hash is None:
        if not flow.history:
            raise RefusedError(f"{flow.name!r} has no former version to go back to")
        return flow.history[0]
    wanted = parse_bundle_hash(hash)
    if wanted == flow.hash:
        raise RefusedError(f"{wanted} is the head of {flow.name!r} already")
    for version in flow.history:
        if version.hash == wanted:
            return version
    known = ", ".join(version.hash for version in flow.history) or "nothing"
    raise NotFoundError(f"{wanted} is not in the history of {flow.name!r}, which holds {known}")


def _put_grant(document: Document, bundle: Bundle) -> None:
    document.put(GRANTS, bundle.hash, {"policy": bundle.descriptor.raw.get("policy", {}), "digest": _digest(bundle)})


def _digest(bundle: Bundle) -> str:
    return base32_bytes(blake2b(bundle.source, digest_size=16).digest())


def _may_start(text: str) -> bool:
    return _SHORTEST_PREFIX <= len(text) <= HASH_LENGTH and all(character in ALPHABET for character in text.upper())
