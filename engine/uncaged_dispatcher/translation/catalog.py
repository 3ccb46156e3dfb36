"""Catalogue of a store's flows in SQLite: full text of names, descriptions, patterns and examples
(FTS5), joined with similarity by an embedding model where one is configured.

The file is derived from the registry and brought up to date by each search: only versions that are
new or gone are touched. A damaged file is made again.
"""

from __future__ import annotations

import re
import sqlite3
from _blake2 import blake2b
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, cast

from uncaged_bundles.contract import Descriptor
from uncaged_bundles.errors import StorageError, UncagedError
from uncaged_bundles.examples import Example
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.registry import KNOWN

from ..packs.registered import RegisteredPacks
from ..packs.sites import CurrentSite
from .similarity import TABLE, Embedder, TextOfFlow, close_packs, fused, similarities

LAYOUT = 2
"""Version of the tables; a file of another version is made again."""
WAIT_S = 30.0
MOST_WORDS = 200
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f])")
"""Characters of scripts that put no spaces between words: each is indexed as a word."""
_TABLES = f"""
create virtual table words using fts5(
    name, description, patterns, examples, tokenize = 'porter unicode61'
);
create table flows(id integer primary key, name text unique, hash text, text text);
{TABLE};
pragma user_version = {LAYOUT};
"""
_RANKED = """
select flows.name, -bm25(words, 4.0, 2.0, 3.0, 3.0) from words join flows on flows.id = words.rowid
where words match ? order by bm25(words, 4.0, 2.0, 3.0, 3.0), flows.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A flow as a model sees it. parameters: JSON Schema, without what only a person may set."""

    flow: str
    pack: str
    description: str
    parameters: Mapping[str, Any]
    patterns: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the entry as JSON."""
        return {
            "flow": self.flow,
            "pack": self.pack,
            "description": self.description,
            "parameters": dict(self.parameters),
            "patterns": list(self.patterns),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogResult:
    """Flows that are nearest to a sentence, best first.

    ambiguous: packs among which similarity cannot choose. note: why the embedding model was not
    used, or empty.
    """

    entries: tuple[CatalogEntry, ...]
    ambiguous: tuple[str, ...] = ()
    note: str = ""


class Catalog:
    """The catalogue of one store: its enabled flows, without those of disabled packs and of packs
    of other sites than the page's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._packs = RegisteredPacks(store).read()
        self._site = CurrentSite(store)
        flows = Registry(store).read().flows.values()
        self._flows: dict[str, BundleHash] = {
            flow.name: flow.hash for flow in flows if flow.enabled
        }
        self._path = store.derived / "catalog.sqlite3"

    def search(self, sentence: str, *, limit: int) -> list[CatalogEntry]:
        """Return the flows that share most words with a sentence, best first."""
        return list(self.find(sentence, limit=limit).entries)

    def find(
        self,
        sentence: str,
        *,
        packs: Collection[str] = (),
        without: Collection[str] = (),
        limit: int,
        embedder: Embedder | None = None,
        threshold: float = 0.0,
    ) -> CatalogResult:
        """Return the flows that are nearest to a sentence: by words, and by an embedding model.

        Args:
            packs: only flows of these; empty means all. without: names of flows to leave out.
            threshold: packs with a difference below it, as a part of the best score, are
                ambiguous; packs that the caller names never are.
        """
        scores, note = self._scores_by_words(sentence), ""
        order = list(scores)
        if embedder is not None:
            # the client of models: only a store that has one configured
            from uncaged_models.embeddings import EmbeddingsFailed

            try:
                meaning = similarities(self._opened, embedder, sentence, self._texts())
            except EmbeddingsFailed as exc:
                note = f"embeddings were not used: {exc}"
            else:
                order, scores = fused(order, meaning), meaning
        entries: list[CatalogEntry] = []
        for name in order:
            if len(entries) == limit:
                break
            if name in without or name not in self._flows:
                continue
            descriptor = self._descriptor(self._flows[name])
            if descriptor is None:
                continue
            pack = self._packs.of_flow(name, declared_pack(descriptor))
            if packs and (pack is None or pack.name not in packs):
                continue
            if pack is None or (pack.enabled and self._site.lack(pack) is None):
                entries.append(entry_of(name, "" if pack is None else pack.name, descriptor))
        found = ((entry.pack, scores.get(entry.flow, 0.0)) for entry in entries)
        ambiguous = () if packs else tuple(close_packs(found, threshold))
        return CatalogResult(entries=tuple(entries), ambiguous=ambiguous, note=note)

    def _scores_by_words(self, sentence: str) -> dict[str, float]:
        """Return the flows that share words with a sentence, best first."""
        query = query_of(sentence)
        if not query:
            return {}
        with self._opened() as connection:
            return dict(connection.execute(_RANKED, (query,)))

    def _texts(self) -> list[TextOfFlow]:
        """Return the texts of the flows that an embedding model compares."""
        with self._opened() as connection:
            rows = connection.execute("select name, hash, text from flows where text <> ''")
            return [
                TextOfFlow(flow=name, digest=text, read=partial(self._text, name, digest))
                for name, digest, text in rows
            ]

    def _text(self, name: str, digest: BundleHash) -> str:
        descriptor = self._descriptor(digest)
        return name if descriptor is None else text_of(name, descriptor)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file with the registry's flows in it."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                connection = self._current()
            except sqlite3.DatabaseError as exc:
                is_locked = isinstance(exc, sqlite3.OperationalError) and "locked" in str(exc)
                if is_locked or not self._path.is_file():
                    raise
                self._path.unlink(missing_ok=True)
                connection = self._current()
        except (OSError, sqlite3.Error) as exc:
            raise StorageError(
                f"{self._path}: the catalogue cannot be opened: {exc}; correct that and try again"
            ) from exc
        with closing(connection):
            yield connection

    def _current(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=WAIT_S, isolation_level=None)
        try:
            connection.execute("begin immediate")  # a second process waits here
            layout = connection.execute("pragma user_version").fetchone()[0]
            if layout not in (0, LAYOUT):
                raise sqlite3.DatabaseError(f"its layout is {layout}, not {LAYOUT}")
            if layout == 0:
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
            self._update(connection)
            connection.execute("commit")
        except BaseException:
            connection.close()
            raise
        return connection

    def _update(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("select name, hash, id from flows").fetchall()
        known = {name: digest for name, digest, _ in rows}
        if known == self._flows:
            return
        gone = [(number,) for name, digest, number in rows if self._flows.get(name) != digest]
        connection.executemany("delete from flows where id = ?", gone)
        connection.executemany("delete from words where rowid = ?", gone)
        for name, digest in self._flows.items():
            if known.get(name) == digest:
                continue
            descriptor = self._descriptor(digest)
            texts = ("", "", "", "") if descriptor is None else texts_of(name, descriptor)
            text = "" if descriptor is None else _digest_of(text_of(name, descriptor))
            added = connection.execute(
                "insert into flows(name, hash, text) values (?, ?, ?)", (name, digest, text)
            )
            connection.execute(
                "insert into words(rowid, name, description, patterns, examples) values (?, ?, ?, ?, ?)",
                (added.lastrowid, *texts),
            )

    def _descriptor(self, digest: BundleHash) -> Descriptor | None:
        """Return the descriptor of a version; None if it is damaged or cannot run here."""
        try:
            descriptor = self._store.load_bundle(digest, KNOWN).descriptor
        except UncagedError:
            return None  # one damaged flow hides no other
        return None if descriptor.raw.get("unsupported") else descriptor


def query_of(sentence: str) -> str:
    """Return a sentence as an FTS5 query: any of its words, each quoted."""
    words = dict.fromkeys(_WORD.findall(spaced(sentence)))
    return " OR ".join(f'"{word}"' for word in list(words)[:MOST_WORDS])


def spaced(text: str) -> str:
    """Return a text with each character of an unspaced script set apart."""
    return _UNSPACED.sub(r" \1 ", text)


def texts_of(name: str, descriptor: Descriptor) -> tuple[str, str, str, str]:
    """Return the indexed texts of a flow: names, description, patterns, examples."""
    raw = descriptor.raw
    names = f"{name} {name.replace('-', ' ')} {raw.get('displayName', '')}"
    return (
        spaced(names),
        spaced(descriptor.description),
        spaced(" ".join(patterns_of(descriptor))),
        spaced(" ".join(sentences_of(descriptor))),
    )


def text_of(name: str, descriptor: Descriptor) -> str:
    """Return the text of a flow that an embedding model compares with a sentence."""
    names = str(descriptor.raw.get("displayName", "")) or name.replace("-", " ")
    lines = [names, descriptor.description, *sentences_of(descriptor), *patterns_of(descriptor)]
    return "\n".join(line for line in lines if line)


def _digest_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def sentences_of(descriptor: Descriptor) -> tuple[str, ...]:
    """Return the sentences of a flow's examples."""
    examples = cast("Sequence[object]", descriptor.raw.get("examples", ()))
    return tuple(Example.read(example, ("examples",)).sentence for example in examples)


def patterns_of(descriptor: Descriptor) -> tuple[str, ...]:
    """Return the sentence patterns of a flow."""
    return tuple(cast("Sequence[str]", descriptor.raw.get("patterns", ())))


def declared_pack(descriptor: Descriptor) -> str:
    """Return the pack that a flow's descriptor names, or an empty text."""
    return str(descriptor.raw.get("pack", ""))


def entry_of(name: str, pack: str, descriptor: Descriptor) -> CatalogEntry:
    """Return a flow as a model sees it."""
    return CatalogEntry(
        flow=name,
        pack=pack,
        description=descriptor.description,
        parameters=descriptor.schema_for_models(),
        patterns=patterns_of(descriptor),
    )
