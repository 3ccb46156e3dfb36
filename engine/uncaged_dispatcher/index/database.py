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
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Self

from uncaged_bundles.records import dataclass

from .fitting import NUMBER, first_run, fits, spaced

FILE = "rules.db"
BUSY_TIMEOUT_S = 30.0
_MOST_FIRST_WORDS = 8
"""Words of a key that are the first ones of a sentence."""
_FIRST = "^"
"""Mark of such a key."""
_DIGITS = frozenset("0123456789")
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
CREATE TABLE posting (key TEXT, rule INTEGER, rest TEXT, shape TEXT, bound INTEGER NOT NULL,
    PRIMARY KEY (key, rule, rest, shape)) WITHOUT ROWID;
CREATE INDEX posting_of_rule ON posting (rule);
CREATE TABLE word (text TEXT PRIMARY KEY, uses INTEGER NOT NULL, keyed INTEGER NOT NULL)
    WITHOUT ROWID;
"""

_FIND = """
WITH known AS MATERIALIZED (
    SELECT text FROM json_each(?1) AS held CROSS JOIN word ON word.text = held.value WHERE keyed > 0),
keys AS (
    SELECT '' AS key UNION ALL SELECT value FROM json_each(?2) UNION ALL SELECT text FROM known
    UNION ALL SELECT one.text || ' ' || other.text
    FROM known AS one CROSS JOIN known AS other ON one.text < other.text)
SELECT rule, rest, shape, bound FROM keys CROSS JOIN posting ON posting.key = keys.key
"""
"""Postings by the words of a sentence, and by the keys of its first words. Unknown words are left
out before pairs are made.
"""


class Requirement(NamedTuple):
    """Words that a sentence must hold, and its shape; see `shapes`."""

    words: frozenset[str]
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule in the index. digest: of its source; body: the compiled rule as JSON; required:
    requirements of which a sentence must meet one; bound: of its readings' ranks.
    """

    digest: str
    name: str
    pattern: str
    body: str
    required: tuple[Requirement, ...] = ()
    bound: int = 0
    id: int = 0


class FoundRule(NamedTuple):
    """The number of a rule that may read a sentence, after the bound of its readings' ranks: no
    reading is better.
    """

    bound: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """A flow of the registry in the index. digest: of its bundle; seal: of its entry."""

    name: str
    digest: str
    enabled: bool
    confirm: bool
    seal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRule:
    """A rule with the pack that its source names, or empty, the facts about the source, and the
    flows with that source.
    """

    row: RuleRow
    pack: str
    facts: Mapping[str, object]
    flows: tuple[FlowRow, ...]


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
            # a file that is lost with the machine's power is filled again
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._prepare(version)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def for_reading(cls, path: Path) -> Self:
        """Open a file as it is, whatever its version.

        Raises:
            sqlite3.Error: there is none, or it is damaged.
        """
        found = cls.__new__(cls)
        found._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        return found

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

    def seals(self) -> list[str]:
        """Return the seals of all flows."""
        (found,) = self._connection.execute("SELECT group_concat(seal, ' ') FROM flow").fetchone()
        return str(found or "").split()

    def drop_flows(self, seals: Iterable[str]) -> set[str]:
        """Remove the flows whose entries had these seals; return their bundles."""
        return self._drop_flows("seal", seals)

    def drop_named(self, names: Iterable[str]) -> set[str]:
        """Remove flows; return their bundles."""
        return self._drop_flows("name", names)

    def _drop_flows(self, column: str, values: Iterable[str]) -> set[str]:
        digests = set()
        for value in values:
            found = self._connection.execute(
                f"DELETE FROM flow WHERE {column} = ? RETURNING digest",  # noqa: S608 - a column's name
                (value,),
            )
            digests |= {digest for (digest,) in found}
        return digests

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

    def flow(self, name: str) -> tuple[FlowRow, Mapping[str, object]] | None:
        """Return one flow with the facts about its bundle."""
        found = self._connection.execute(
            "SELECT flow.*, facts FROM flow LEFT JOIN source ON source.digest = flow.digest"
            " WHERE name = ?",
            (name,),
        ).fetchone()
        if found is None:
            return None
        *row, facts = found
        return _flow_row(row), json.loads(facts or "{}")

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
        used = Counter(word for rule in rules for each in rule.required for word in each.words)
        self._count({word: (count, 0) for word, count in used.items()})
        uses = self._uses(used)
        keyed: Counter[str] = Counter()
        for rule in rules:
            number = self._connection.execute(
                "INSERT INTO rule (digest, name, pattern, body) VALUES (?, ?, ?, ?)",
                (digest, rule.name, rule.pattern, rule.body),
            ).lastrowid
            for required in rule.required:
                key, rest = _posted(required, uses)
                if not key.startswith(_FIRST):
                    keyed.update(key.split())
                self._connection.execute(
                    "INSERT OR IGNORE INTO posting VALUES (?, ?, ?, ?, ?)",
                    (key, number, rest, required.shape, rule.bound),
                )
        self._count({word: (0, count) for word, count in keyed.items()})

    def _count(self, words: Mapping[str, tuple[int, int]]) -> None:
        """Add to the uses of words, and to the number of keys that they are in."""
        self._connection.executemany(
            "INSERT INTO word VALUES (?, ?, ?) ON CONFLICT (text) DO UPDATE"
            " SET uses = uses + excluded.uses, keyed = keyed + excluded.keyed",
            [(word, *counts) for word, counts in words.items()],
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

    # Look-up

    def find(self, words: Sequence[str]) -> list[FoundRule]:
        """Return the numbers of the rules by which a sentence of these words may be read, by the
        bounds of their ranks; see `FoundRule`.
        """
        held = frozenset(words)
        if not _DIGITS.isdisjoint("".join(words)):
            held |= {NUMBER}
        rows = self._connection.execute(
            _FIND, (json.dumps(list(held)), json.dumps(_first_keys(words)))
        )
        text = spaced(words)
        return sorted(
            {
                FoundRule(bound, rule)
                for rule, rest, shape, bound in rows
                if (not rest or held.issuperset(rest.split(" "))) and fits(shape, text)
            }
        )

    def load(self, numbers: Iterable[int]) -> Iterator[StoredRule]:
        """Yield the rules with these numbers; those that were removed meanwhile are left out."""
        found = self._connection.execute(
            "SELECT rule.id, rule.digest, rule.name, pattern, body, pack, facts,"
            " flow.name, flow.digest, enabled, confirm, seal"
            " FROM json_each(?) AS wanted CROSS JOIN rule ON rule.id = wanted.value"
            " JOIN source ON source.digest = rule.digest"
            " LEFT JOIN flow ON flow.digest = rule.digest ORDER BY wanted.id",
            (json.dumps(list(numbers)),),
        )
        for _, rows in groupby(found, itemgetter(0)):
            first, *others = rows
            number, digest, name, pattern, body, pack, facts = first[:7]
            yield StoredRule(
                row=RuleRow(id=number, digest=digest, name=name, pattern=pattern, body=body),
                pack=pack,
                facts=json.loads(facts),
                flows=tuple(_flow_row(row[7:]) for row in (first, *others) if row[7] is not None),
            )

    def rules(self, digest: str | None = None) -> Iterator[RuleRow]:
        """Yield the rules of one source, or all."""
        for number, source, name, pattern, body in self._connection.execute(
            "SELECT id, digest, name, pattern, body FROM rule WHERE ?1 IS NULL OR digest = ?1",
            (digest,),
        ).fetchall():
            yield RuleRow(id=number, digest=source, name=name, pattern=pattern, body=body)

    def words(self) -> list[str]:
        """Return all required words of all rules."""
        found = self._connection.execute("SELECT text FROM word WHERE text <> ?", (NUMBER,))
        return [text for (text,) in found]

    def _uses(self, words: Iterable[str]) -> dict[str, int]:
        """Return the words that rules require, with the number of their sets."""
        return dict(
            self._connection.execute(
                "SELECT text, uses FROM json_each(?) AS wanted CROSS JOIN word"
                " ON word.text = wanted.value",
                (json.dumps(list(words)),),
            )
        )


def _first_keys(words: Sequence[str]) -> list[str]:
    """Return the keys of the first word, the first two words, and so on."""
    return list(accumulate(words[:_MOST_FIRST_WORDS], "{} {}".format, initial=_FIRST))[1:]


def _posted(required: Requirement, uses: Mapping[str, int]) -> tuple[str, str]:
    """Return the key of a requirement and the other words: the first words of its shape, or the
    rarest two of the required ones.
    """
    words, shape = required
    first = first_run(shape)[:_MOST_FIRST_WORDS]
    if len(first) > 1 or (first and words == set(first)):
        return " ".join((_FIRST, *first)), " ".join(sorted(words.difference(first)))
    ordered = sorted(words, key=lambda word: (uses.get(word, 0), word))
    return " ".join(sorted(ordered[:2])), " ".join(ordered[2:])


def _flow_row(found: Sequence[object]) -> FlowRow:
    name, digest, enabled, confirm, seal = found
    return FlowRow(
        name=str(name),
        digest=str(digest),
        enabled=bool(enabled),
        confirm=bool(confirm),
        seal=str(seal),
    )
