"""Index of the rules of all flows and packs of a store, in ``dispatcher/rules.db``.

`refresh` compares the state of the registry and of the packs, and brings in what changed: a new
version of a flow is one source to compile.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from uncaged_bundles.errors import StorageError, UncagedError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Flow, Registry, RegistryChanges
from uncaged_bundles.storage.store import Store
from uncaged_bundles.version import __version__

from ..constructions.construction import schema_digest
from ..constructions.kept import Constructions
from ..grammar.compiled import FORMAT, CompiledGrammar
from ..grammar.patterns import Rules, TextSlot
from ..grammar.sentences import SentenceError
from ..packs.pack import Pack
from ..packs.registered import PackSet, RegisteredPacks
from .database import FILE, FlowRow, FoundRule, RuleDatabase, RuleRow, StoredRule

SETTLED_NS = 2_000_000_000
"""Age at which a file's state identifies its content; see the registry's index."""
_PACK = "pack:"
_LEARNED = "learned:"
MOST_RULES = 1000
"""Rules that are tried for one sentence."""
_MOST_KEPT = 4096
_VERSION = f"{__version__} 9 {FORMAT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRule:
    """A rule with its compiled form, which rules of one pattern share, and the flows that it
    belongs to; a pack's rule has none. That of a construction has its flow while the flow's
    parameters are those of the learning. pack: the one that its source names, or empty. text_slots:
    captures of text in all its patterns.
    """

    row: RuleRow
    grammar: CompiledGrammar
    flows: tuple[FlowRow, ...]
    pack: str
    text_slots: int

    @property
    def is_pack(self) -> bool:
        return self.row.digest.startswith(_PACK)

    @property
    def is_learned(self) -> bool:
        return self.row.digest.startswith(_LEARNED)


class IndexedStore(Protocol):
    """The store with its registry; an engine is one."""

    @property
    def store(self) -> Store:
        """Return the store."""

    @property
    def registry(self) -> Registry:
        """Return its registry."""


class RuleIndex:
    """The rules of one store. Opens its file at the first look-up; `close` closes it."""

    def __init__(self, engine: IndexedStore) -> None:
        self._registry = engine.registry
        self._store = engine.store
        self._registry_path = str(engine.store.registry_path)
        self._packs = RegisteredPacks(engine.store)
        self._learned = Constructions(engine.store)
        self._pack_set: PackSet | None = None
        self._opened: RuleDatabase | None = None
        self._checked: tuple[object, str, str] | None = None
        self._state: object = None
        self._kept: dict[int, IndexedRule] = {}
        self._grammars: dict[str, CompiledGrammar] = {}
        self._flows: dict[str, tuple[FlowRow, Mapping[str, object]]] = {}

    @property
    def store(self) -> Store:
        """Return the store."""
        return self._store

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def refresh(self) -> None:
        """Bring the index up to date; the other methods answer from the state of the last time."""
        seen = (self._registry_seen(), self._packs.stamp(), self._learned.stamp())
        database = self._database()
        if seen != self._checked or seen[0] is None:
            try:
                self._refresh(database, *seen[1:])
            except sqlite3.DatabaseError as exc:
                self._rebuild(exc, *seen[1:])
            self._checked = seen

    @property
    def seen(self) -> object:
        """Return what the last `refresh` compared: another value after each change of the rules,
        and each time while the registry may be edited without a trace.
        """
        return object() if self._checked is None or self._checked[0] is None else self._checked

    def packs(self) -> PackSet:
        """Return the packs as they are in the index, whose copies need no YAML."""
        if self._pack_set is None:
            with self._using() as database:
                found = json.loads(database.meta("pack_set") or "[]")
            packs = map(Pack.restore, found)
            self._pack_set = PackSet(packs={pack.name: pack for pack in packs})
        return self._pack_set

    def find(self, words: Sequence[str]) -> list[FoundRule]:
        """Return the rules by which a sentence of these words may be read, those of disabled
        flows and packs included; those that can have the best readings first.

        Raises:
            SentenceError: there are too many.
        """
        with self._using() as database:
            found = database.find(words)
        if len(found) > MOST_RULES:
            raise SentenceError(
                f"the sentence has the words of {len(found)} rules; at most {MOST_RULES} are tried, write a shorter one"
            )
        return found

    def flow(self, name: str) -> tuple[FlowRow, Mapping[str, object]] | None:
        """Return a flow with the facts about its bundle."""
        found = self._flows.get(name)
        if found is None:
            with self._using() as database:
                found = database.flow(name)
            if found is None:
                return None
            if len(self._flows) >= _MOST_KEPT:
                self._flows.clear()
            self._flows[name] = found
        return found

    def enabled(self) -> Iterator[tuple[str, Mapping[str, object], list[RuleRow]]]:
        """Yield each enabled flow with the facts about its bundle and its rules."""
        rules: dict[str, list[RuleRow]] = {}
        with self._using() as database:
            for rule in database.rules():
                rules.setdefault(rule.digest, []).append(rule)
            flows = [flow for flow in database.flows() if flow.enabled]
        for flow in flows:
            with self._using() as database:
                facts = database.facts(flow.digest)
            yield flow.name, facts or {}, rules.get(flow.digest, [])

    def declared_flows(self, pack: str) -> list[str]:
        """Return the flows whose descriptor names a pack."""
        with self._using() as database:
            members = database.members(pack)
            return [row.name for digest in members for row in database.flows_of(digest)]

    def enabled_grammars(self) -> Iterator[CompiledGrammar]:
        """Yield the rules of enabled flows and packs."""
        with self._using() as database:
            numbers = [row.id for row in database.rules()]
        for start in range(0, len(numbers), MOST_RULES):
            for rule in self.rules(numbers[start : start + MOST_RULES]):
                if self._is_enabled(rule):
                    yield rule.grammar

    def _is_enabled(self, rule: IndexedRule) -> bool:
        packs = self.packs()
        if rule.is_pack:
            pack = packs.packs.get(rule.pack)  # another process may have removed it
            return pack is not None and pack.enabled
        owners = (packs.of_flow(flow.name, rule.pack) for flow in rule.flows if flow.enabled)
        return any(owner is None or owner.enabled for owner in owners)

    def rules_of(self, digest: str) -> list[RuleRow]:
        """Return the rules of one source."""
        with self._using() as database:
            return list(database.rules(digest))

    def pack_names(self) -> list[str]:
        """Return the packs that files or descriptors name."""
        with self._using() as database:
            return database.pack_names()

    def problems_of_pack(self, name: str) -> list[str]:
        """Return the problems of a pack's own rules."""
        with self._using() as database:
            found = (database.facts(f"{_PACK}{name}") or {}).get("problems")
        return list(map(str, found)) if isinstance(found, list) else []

    def words(self) -> list[str]:
        """Return all required words of all rules."""
        with self._using() as database:
            return database.words()

    # Keeping up with registry and packs

    def _database(self) -> RuleDatabase:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @contextmanager
    def _using(self) -> Iterator[RuleDatabase]:
        """Open the file for a look-up; remove it if it turns out to be damaged.

        Raises:
            StorageError: it is damaged, or another process keeps it locked.
        """
        try:
            yield self._database()
        except (sqlite3.DatabaseError, ValueError) as exc:
            if not _is_damage(exc):
                raise StorageError(
                    f"the index {self._path()} cannot be read: {exc}; correct that and try again"
                ) from exc
            self.close()
            self._forget()
            self._checked = None
            _remove(self._path())
            raise StorageError(
                f"the index {self._path()} was damaged and is removed ({exc}); try again, which makes it anew"
            ) from exc

    def _open(self) -> RuleDatabase:
        path = self._path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return RuleDatabase(path, _VERSION)
        except sqlite3.OperationalError:
            return RuleDatabase(None, _VERSION)  # a store that cannot be written
        except sqlite3.DatabaseError:
            _remove(path)
            return RuleDatabase(path, _VERSION)
        except OSError:
            return RuleDatabase(None, _VERSION)

    def _rebuild(self, problem: sqlite3.DatabaseError, packs: str, learned: str) -> None:
        """Replace a damaged file, or continue in memory where it cannot be written."""
        self.close()
        self._forget()
        if is_damaged := _is_damage(problem):
            _remove(self._path())
        database = RuleDatabase(self._path() if is_damaged else None, _VERSION)
        try:
            self._refresh(database, packs, learned)
        except sqlite3.DatabaseError as exc:
            database.close()
            raise StorageError(f"the index {self._path()} cannot be written: {exc}") from exc
        self._opened = database

    def _path(self) -> Path:
        return self._store.derived / FILE

    def _registry_seen(self) -> object:
        """Return the identity of the registry's text; None while another edit may leave it as
        it is.
        """
        try:
            found = os.stat(self._registry_path)  # noqa: PTH116 - at every sentence
        except OSError:
            return 0
        if time.time_ns() - found.st_mtime_ns < SETTLED_NS:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _refresh(self, database: RuleDatabase, packs: str, learned: str) -> None:
        """Bring in the changes of the registry, the packs and the constructions since the last
        time.
        """
        same_packs = database.meta("packs") == packs
        same_learned = database.meta("learned") == learned
        state = database.meta("registry")
        known: list[str] = []

        def seals() -> list[str]:
            known[:] = database.seals()
            return known

        changes = self._registry.changes_since(state, seals)
        if changes is not None or not same_packs or not same_learned:
            with database.changing():
                if database.meta("registry") != state:  # another process was quicker
                    changes = self._registry.changes(seals())
                if changes is not None:
                    self._bring_in_flows(database, changes, known)
                if not same_packs:
                    self._bring_in_packs(database)
                    database.put_meta("packs", packs)
                if not same_learned:
                    self._bring_in_constructions(database)
                    database.put_meta("learned", learned)
        # another process may have brought it in
        now = tuple(map(database.meta, ("registry", "packs", "learned")))
        if now != self._state:
            self._state = now
            self._forget()
            self._pack_set = None

    def _bring_in_flows(
        self, database: RuleDatabase, changes: RegistryChanges, known: Sequence[str]
    ) -> None:
        dropped = (
            database.drop_flows(set(known).difference(changes.seals))
            if changes.names is None
            else database.drop_named(changes.names)
        )
        database.put_flows(_row_of(flow, seal) for seal, flow in changes.changed.items())
        # rules are numbered in the order in which flows were first added
        added = sorted(changes.changed.values(), key=lambda flow: (flow.created_ms, flow.name))
        for bundle_hash in dict.fromkeys(flow.hash for flow in added):
            if database.facts(bundle_hash) is None:
                self._bring_in_bundle(database, bundle_hash)
        database.drop_sources(digest for digest in dropped if not database.flows_of(digest))
        database.put_meta("registry", changes.state)

    def _bring_in_bundle(self, database: RuleDatabase, bundle_hash: BundleHash) -> None:
        from uncaged_engine.services.registry import KNOWN  # 6 ms before a worker starts

        try:
            descriptor = self._store.load_descriptor(bundle_hash, KNOWN).raw
        except UncagedError as exc:
            # one that is damaged, or made for an effect that is not here, hides no other
            database.put_source(bundle_hash, {"problems": [str(exc)]}, ())
            return
        from .compiling import compile_flow  # 20 ms of CPU, for a new version of a flow only

        source = compile_flow(bundle_hash, descriptor)
        database.put_source(bundle_hash, _facts(descriptor, source.problems), source.rules)

    def _bring_in_packs(self, database: RuleDatabase) -> None:
        from .compiling import compile_pack

        packs = self._packs.read().packs
        documents = [pack.document() for pack in packs.values()]
        database.put_meta("pack_set", json.dumps(documents, ensure_ascii=False))
        for pack in packs.values():
            digest = f"{_PACK}{pack.name}"
            try:
                rules, problems = compile_pack(digest, pack).rules, []
            except UncagedError as exc:
                rules, problems = (), [str(exc)]
            database.put_source(digest, {"pack": pack.name, "problems": problems}, rules)
        gone = {digest for digest in database.sources(_PACK) if digest[len(_PACK) :] not in packs}
        database.drop_sources(gone)

    def _bring_in_constructions(self, database: RuleDatabase) -> None:
        from .compiling import compile_construction

        database.drop_sources(database.sources(_LEARNED))
        for found in self._learned.all():
            construction = found.construction
            digest = f"{_LEARNED}{construction.id}"
            source = compile_construction(digest, construction)
            facts = {"flow": construction.flow, "schema": construction.schema}
            database.put_source(digest, {**facts, "problems": source.problems}, source.rules)

    def rules(self, numbers: Sequence[int]) -> list[IndexedRule]:
        """Return the rules with these numbers, those that were removed meanwhile left out."""
        missing = [number for number in numbers if number not in self._kept]
        if missing:
            if len(self._kept) + len(missing) > _MOST_KEPT:
                self._forget()
                missing = list(numbers)
            with self._using() as database:
                for found in database.load(missing):
                    self._kept[found.row.id] = self._indexed(found)
                    self._flows.update({flow.name: (flow, found.facts) for flow in found.flows})
        return [self._kept[number] for number in numbers if number in self._kept]

    def _forget(self) -> None:
        """Empty the cache of rules and flows."""
        self._kept.clear()
        self._grammars.clear()
        self._flows.clear()

    def _indexed(self, found: StoredRule) -> IndexedRule:
        learned = found.row.digest.startswith(_LEARNED)
        body = found.row.body
        grammar = self._grammars.get(body)
        if grammar is None:
            grammar = self._grammars[body] = CompiledGrammar.read(json.loads(body))
        return IndexedRule(
            row=found.row,
            grammar=grammar,
            flows=self._flow_of_construction(found.row.digest) if learned else found.flows,
            pack=found.pack,
            text_slots=_text_slots(grammar.rules),
        )

    def _flow_of_construction(self, digest: str) -> tuple[FlowRow, ...]:
        """Return the flow of a construction while its parameters are those of the learning."""
        database = self._database()
        learned = database.facts(digest)
        # another process may have removed it
        found = None if learned is None else database.flow(str(learned["flow"]))
        if learned is None or found is None:
            return ()
        flow, facts = found
        declared = facts.get("parameters", {})
        same = isinstance(declared, Mapping) and schema_digest(declared) == learned["schema"]
        return (flow,) if same else ()


def _text_slots(rules: Rules) -> int:
    return sum(
        isinstance(step.part, TextSlot)
        for patterns in rules
        for pattern in patterns
        for step in pattern.steps
    )


def _facts(descriptor: Mapping[str, object], problems: Sequence[str]) -> dict[str, object]:
    """Return the facts about a bundle that readings need."""
    kept = ("name", "description", "parameters", "pack", "learn", "examples", "unsupported")
    facts = {key: descriptor[key] for key in kept if key in descriptor}
    return {**facts, "problems": list(problems)}


def _row_of(flow: Flow, seal: str) -> FlowRow:
    return FlowRow(
        name=flow.name,
        digest=flow.hash,
        enabled=flow.enabled,
        confirm=flow.confirm,
        seal=seal,
    )


def _is_damage(problem: sqlite3.DatabaseError | ValueError) -> bool:
    """Whether the file has to go: not for one that is locked, or a full disk. A statement that
    fails by itself means other tables.
    """
    if isinstance(problem, sqlite3.OperationalError):
        return problem.sqlite_errorcode == sqlite3.SQLITE_ERROR
    return True


def _remove(path: Path) -> None:
    for name in _files(path):
        with suppress(OSError):
            name.unlink(missing_ok=True)


def _files(path: Path) -> Iterable[Path]:
    return (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")))
