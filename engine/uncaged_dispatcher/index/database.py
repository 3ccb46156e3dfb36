"""SQLite file of the index: sources of rules, their rules, and postings by required words.

Rule 1: the file has only facts that bundles, packs and the registry have, too; it may be deleted at
any time, and is filled again.
Rule 2: rules of a source are written once; a changed flow has another source.
Rule 3: a change is one transaction with the state of the registry that it was made for.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.records import dataclass

BUSY_TIMEOUT_S = 30.0
_FEW_WORDS = 16
"""Words of a sentence up to which unknown ones are not looked up first."""
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE source (digest TEXT PRIMARY KEY, pack TEXT NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX source_of_pack ON source (pack) WHERE pack <> '';
CREATE TABLE flow (name TEXT PRIMARY KEY, digest TEXT NOT NULL, enabled INTEGER NOT NULL,
    confirm INTEGER NOT NULL, seal TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX flow_by_seal ON flow (seal);
CREATE INDEX flow_of_source ON flow (digest);
CREATE TABLE rule (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, name TEXT NOT NULL,
    pattern TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX rule_of_source ON rule (digest);
CREATE TABLE posting (key TEXT, rule INTEGER, rest TEXT, sequence TEXT NOT NULL,
    PRIMARY KEY (key, rule, rest)) WITHOUT ROWID;
CREATE INDEX posting_of_rule ON posting (rule);
CREATE TABLE word (text TEXT PRIMARY KEY, uses INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule in the index. digest: of its source; body: the compiled rule as JSON; required: the
    sets of words of which a sentence must hold one; sequence: words that it must hold in order.
    """

    digest: str
    name: str
    pattern: str
    body: str
    required: tuple[frozenset[str], ...] = ()
    sequence: tuple[str, ...] = ()
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """A flow of the registry in the index. digest: of its bundle; seal: of its entry."""

    name: str
    digest: str
    enabled: bool
    confirm: bool
    seal: str


class RuleDatabase:
    """The tables of one index file. The caller closes it."""

    def __init__(self, path: Path | None, version: str) -> None:
        """Open the file, or an index in memory; one of another version is emptied.

        Raises:
            sqlite3.DatabaseError: the file is damaged or cannot be written.
        """
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path, timeout=BUSY_TIMEOUT_S, isolation_level=None
        )
        try:
            self._prepare(version)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, version: str) -> None:
        with suppress(sqlite3.OperationalError):
            if self.meta("version") == version:
                return
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self.changing():
            with suppress(sqlite3.OperationalError):
                if self.meta("version") == version:
                    return  # another process was quicker
            for kind, name in self._connection.execute(
                "SELECT type, name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                self._connection.execute(f"DROP {kind} {name}")
            for statement in _SCHEMA.split(";"):
                self._connection.execute(statement)
            self.put_meta("version", version)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Make the changes of the block one transaction; other writers wait."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    # Facts about the whole

    def meta(self, key: str) -> str | bytes | None:
        found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def put_meta(self, key: str, value: str | bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # Flows and sources

    def put_flows(self, rows: Iterable[FlowRow]) -> None:
        """Insert flows, or replace those of the same name."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO flow VALUES (?, ?, ?, ?, ?)",
            [(row.name, row.digest, row.enabled, row.confirm, row.seal) for row in rows],
        )

    def drop_flows(self, seals: Iterable[str]) -> None:
        """Remove the flows whose entries had these seals."""
        self._connection.executemany("DELETE FROM flow WHERE seal = ?", [(s,) for s in seals])

    def flows(self) -> list[FlowRow]:
        """Return all flows, by name."""
        found = self._connection.execute("SELECT * FROM flow ORDER BY name")
        return [_flow_row(row) for row in found]

    def pack_names(self) -> list[str]:
        """Return the packs that sources name."""
        found = self._connection.execute(
            "SELECT DISTINCT pack FROM source WHERE pack <> '' ORDER BY pack"
        )
        return [name for (name,) in found]

    def members(self, pack: str) -> list[str]:
        """Return the sources that name a pack."""
        found = self._connection.execute("SELECT digest FROM source WHERE pack = ?", (pack,))
        return [digest for (digest,) in found]

    def flow(self, name: str) -> FlowRow | None:
        """Return one flow."""
        found = self._connection.execute("SELECT * FROM flow WHERE name = ?", (name,)).fetchone()
        return None if found is None else _flow_row(found)

    def flows_of(self, digest: str) -> list[FlowRow]:
        """Return the flows whose bundle is the source."""
        found = self._connection.execute("SELECT * FROM flow WHERE digest = ?", (digest,))
        return [_flow_row(row) for row in found]

    def facts(self, digest: str) -> Mapping[str, object] | None:
        """Return the facts about a source that were stored with its rules; None if there is no
        such source.
        """
        found = self._connection.execute(
            "SELECT facts FROM source WHERE digest = ?", (digest,)
        ).fetchone()
        if found is None:
            return None
        facts: dict[str, object] = json.loads(found[0])
        return facts

    def put_source(
        self, digest: str, facts: Mapping[str, object], rules: Sequence[RuleRow]
    ) -> None:
        """Insert a source with its rules, or replace it."""
        self.drop_sources([digest])
        self._connection.execute(
            "INSERT INTO source VALUES (?, ?, ?)",
            (digest, facts.get("pack", ""), json.dumps(facts, ensure_ascii=False)),
        )
        used = Counter(word for rule in rules for words in rule.required for word in words)
        self._connection.executemany(
            "INSERT INTO word VALUES (?, ?) ON CONFLICT (text) DO UPDATE SET uses = uses + excluded.uses",
            used.items(),
        )
        uses = self._uses(used)
        for rule in rules:
            number = self._connection.execute(
                "INSERT INTO rule (digest, name, pattern, body) VALUES (?, ?, ?, ?)",
                (digest, rule.name, rule.pattern, rule.body),
            ).lastrowid
            sequence = " ".join(rule.sequence)
            self._connection.executemany(
                "INSERT OR IGNORE INTO posting VALUES (?, ?, ?, ?)",
                [
                    (key, number, rest, sequence)
                    for key, rest in (_posted(words, uses) for words in rule.required)
                ],
            )

    def drop_sources(self, digests: Iterable[str]) -> None:
        """Remove sources with their rules. Counts of words stay: they only choose keys."""
        for digest in digests:
            self._connection.execute(
                "DELETE FROM posting WHERE rule IN (SELECT id FROM rule WHERE digest = ?)",
                (digest,),
            )
            self._connection.execute("DELETE FROM rule WHERE digest = ?", (digest,))
            self._connection.execute("DELETE FROM source WHERE digest = ?", (digest,))

    def sources(self, prefix: str) -> list[str]:
        """Return the digests that begin with a prefix: those of packs or of constructions."""
        return [
            digest
            for (digest,) in self._connection.execute(
                "SELECT digest FROM source WHERE substr(digest, 1, ?) = ?", (len(prefix), prefix)
            )
        ]

    def unused_sources(self) -> list[str]:
        """Return the bundles in the index that are no flow's head."""
        return [
            digest
            for (digest,) in self._connection.execute(
                "SELECT digest FROM source WHERE digest NOT LIKE '%:%'"
                " AND NOT EXISTS (SELECT 1 FROM flow WHERE flow.digest = source.digest)"
            )
        ]

    # Look-up

    def find(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of the rules by which a sentence of these words may be read."""
        held = frozenset(words)
        listed = sorted(held if len(held) <= _FEW_WORDS else self._uses(held))
        keys = ["", *listed]
        keys += [f"{one} {other}" for at, one in enumerate(listed) for other in listed[at + 1 :]]
        rows = self._connection.execute(
            "SELECT rule, rest, sequence FROM json_each(?) AS wanted CROSS JOIN posting"
            " ON posting.key = wanted.value",
            (json.dumps(keys),),
        )
        return sorted(
            {
                rule
                for rule, rest, sequence in rows
                if (not rest or held.issuperset(rest.split(" "))) and _in_order(sequence, words)
            }
        )

    def rule(self, number: int) -> RuleRow | None:
        """Return one rule; None if it was removed meanwhile."""
        found = self._connection.execute(
            "SELECT digest, name, pattern, body FROM rule WHERE id = ?", (number,)
        ).fetchone()
        if found is None:
            return None
        digest, name, pattern, body = found
        return RuleRow(id=number, digest=digest, name=name, pattern=pattern, body=body)

    def rules(self, digest: str | None = None) -> Iterator[RuleRow]:
        """Yield the rules of one source, or all."""
        for number, source, name, pattern, body in self._connection.execute(
            "SELECT id, digest, name, pattern, body FROM rule WHERE ?1 IS NULL OR digest = ?1",
            (digest,),
        ).fetchall():
            yield RuleRow(id=number, digest=source, name=name, pattern=pattern, body=body)

    def words(self) -> list[str]:
        """Return all required words of all rules."""
        return [text for (text,) in self._connection.execute("SELECT text FROM word")]

    def _uses(self, words: Iterable[str]) -> dict[str, int]:
        """Return the words that rules require, with the number of their sets."""
        return dict(
            self._connection.execute(
                "SELECT text, uses FROM json_each(?) AS wanted CROSS JOIN word"
                " ON word.text = wanted.value",
                (json.dumps(list(words)),),
            )
        )


def _posted(words: frozenset[str], uses: Mapping[str, int]) -> tuple[str, str]:
    """Return the key of a set of words, its two rarest, and the other words."""
    ordered = sorted(words, key=lambda word: (uses.get(word, 0), word))
    return " ".join(sorted(ordered[:2])), " ".join(ordered[2:])


def _in_order(sequence: str, words: Sequence[str]) -> bool:
    """Return whether words follow each other in a sentence, with others between them."""
    if not sequence:
        return True
    following = iter(words)
    return all(word in following for word in sequence.split(" "))


def _flow_row(found: Sequence[object]) -> FlowRow:
    name, digest, enabled, confirm, seal = found
    return FlowRow(
        name=str(name),
        digest=str(digest),
        enabled=bool(enabled),
        confirm=bool(confirm),
        seal=str(seal),
    )
