"""Learned constructions of a store: ``constructions/PACK.jsonl``, one construction a line.

A file is replaced as a whole under its lock, so that a reader never sees half of a change. A
damaged file hides no other; its name is in `problems`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.records import dataclass
from uncaged_bundles.shapes import ShapeError
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.canonical import CodecError, decode, encode

from ..file_states import states_of_files
from .construction import Construction, merged, schema_digest

NO_PACK = "_"
"""Name of the file for flows without a pack; no pack is called so."""
MOST = 10_000
"""Limit of a file's constructions; the oldest go first."""
LOCK_S = 30.0
SUFFIX = ".jsonl"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedConstruction:
    """A construction with its pack; an empty text for a flow without one. active: the flow is
    enabled, and its parameters are those of the learning.
    """

    pack: str
    construction: Construction
    active: bool

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {**self.construction.document(), "pack": self.pack, "active": self.active}


class Constructions:
    """The constructions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._directory = store.documents / "constructions"

    def all(self) -> Iterator[LearnedConstruction]:
        """Yield all constructions, pack by pack; those of damaged files are left out."""
        digests = FlowDigests(self._store)
        for path in self._files():
            try:
                found = _read(path)
            except DamagedError:
                continue
            for construction in found:
                yield LearnedConstruction(
                    pack=_pack_of(path),
                    construction=construction,
                    active=digests.of(construction.flow) == construction.schema,
                )

    def stamp(self) -> str:
        """Return the identity of the files; another content has another one."""
        return states_of_files(self._directory)

    def problems(self) -> list[str]:
        """Return a sentence for each damaged file."""
        problems = []
        for path in self._files():
            try:
                _read(path)
            except DamagedError as exc:
                problems.append(str(exc))
        return problems

    def add(self, pack: str, construction: Construction) -> bool:
        """Keep a construction; False if a known one covers it.

        Raises:
            DamagedError: the pack's file cannot be read; it stays as it is.
        """
        path = self._path(pack)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        with changing(path, timeout_s=LOCK_S):
            known = _read(path)
            now = merged(known, construction)[-MOST:]
            if now == known:
                return False
            _write(path, now)
        return True

    def find(self, id: str) -> LearnedConstruction:
        """Return the construction with an id or the only one with an id that begins so.

        Raises:
            NotFoundError: there is none, or there are several.
        """
        found = [one for one in self.all() if one.construction.id.startswith(id)] if id else []
        if len(found) != 1:
            count = "no construction" if not found else f"{len(found)} constructions"
            raise NotFoundError(
                f"{count} with the id {id!r}; 'uncaged-workflow constructions list' shows all"
            )
        return found[0]

    def remove(self, id: str) -> Construction:
        """Delete one construction and return it; NotFoundError as in `find`."""
        found = self.find(id)
        self._drop(found.pack, {found.construction.id})
        return found.construction

    def prune(self) -> list[Construction]:
        """Delete the constructions of flows that are gone or whose parameters have changed, and
        return them.
        """
        gone = [one for one in self.all() if not one.active]
        for pack in {one.pack for one in gone}:
            ids = {one.construction.id for one in gone if one.pack == pack}
            self._drop(pack, ids)
        return [one.construction for one in gone]

    def _drop(self, pack: str, ids: Collection[str]) -> None:
        path = self._path(pack)
        with changing(path, timeout_s=LOCK_S):
            _write(path, [one for one in _read(path) if one.id not in ids])

    def _path(self, pack: str) -> Path:
        """Return the file of a pack; a name that is no file name shares the file of no pack."""
        name = pack if _NAME.fullmatch(pack) else NO_PACK
        return self._directory / f"{name}{SUFFIX}"

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{SUFFIX}"))


class FlowDigests:
    """Digests of the parameters of flows, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._registry = Registry(store)
        self._known: dict[str, str | None] = {}

    def of(self, flow: str) -> str | None:
        """Return the digest of a flow; None if it is gone, disabled or damaged."""
        if flow not in self._known:
            self._known[flow] = self._read(flow)
        return self._known[flow]

    def _read(self, flow: str) -> str | None:
        found = self._registry.flow(flow)
        if found is None or not found.enabled:
            return None
        try:
            from uncaged_engine.services.registry import KNOWN  # 6 ms before a worker starts

            descriptor = self._store.load_bundle(found.hash, KNOWN).descriptor
        except UncagedError:
            return None
        return schema_digest(descriptor.parameters)


def _pack_of(path: Path) -> str:
    return "" if path.stem == NO_PACK else path.stem


def _read(path: Path) -> list[Construction]:
    constructions = []
    for number, line in enumerate((read_if_there(path) or b"").splitlines(), start=1):
        try:
            constructions.append(Construction.read(decode(line)))
        except (CodecError, ShapeError) as exc:
            raise DamagedError(
                f"{path}:{number}: {exc}; correct or delete this line, nothing else is affected"
            ) from exc
    return constructions


def _write(path: Path, constructions: list[Construction]) -> None:
    lines = [encode(one.document()) + "\n" for one in constructions]
    write_atomically(path, "".join(lines).encode())
