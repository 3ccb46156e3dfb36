"""Contents of the registry at one moment: the readable flows, and a sentence for every other
entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import shapes
from ..errors import DamagedError, UncagedError, UsageError
from ..ids import BundleHash, parse_bundle_hash
from ..names import FlowName, parse_flow_name
from ..records import dataclass

if TYPE_CHECKING:
    from .document import Document, Entry

FLOWS = "workflows"
GRANTS = "grants"
REMOVED = "removed"
SEEDED = "seeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A present or former head of a flow, with the time when it was added."""

    hash: BundleHash
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow with its head (*hash*, *timestamp_ms*) and former heads, newest first.

    source: person, sample, import, or ``mcp:`` with the server of a tool. confirm: a sentence runs
    the flow only after a person agreed.

    unsupported: the language of a head that is kept and not run; read from its bundle, not a field
    of the entry.
    """

    name: FlowName
    hash: BundleHash
    timestamp_ms: int
    history: tuple[Version, ...]
    enabled: bool
    source: str
    created_ms: int
    unsupported: str | None = None
    confirm: bool = False

    @property
    def head(self) -> Version:
        return Version(hash=self.hash, timestamp_ms=self.timestamp_ms)

    @property
    def versions(self) -> tuple[Version, ...]:
        """Return all versions, the head first."""
        return (self.head, *self.history)

    def _repr_html_(self) -> str:
        """Return the flow as a notebook shows it."""
        from ..notebook import pairs_html  # for notebooks alone

        return pairs_html(
            self.name,
            (
                ("version", self.hash),
                ("former versions", ", ".join(version.hash for version in self.history)),
                ("enabled", "yes" if self.enabled else "no"),
                ("source", self.source),
            ),
        )

    def fields(self) -> dict[str, object]:
        """Return the entry as it is written."""
        return {
            "hash": self.hash,
            "timestamp": self.timestamp_ms,
            "enabled": self.enabled,
            "source": self.source,
            "created": self.created_ms,
            **({"confirm": True} if self.confirm else {}),
            "history": [
                {"hash": version.hash, "timestamp": version.timestamp_ms}
                for version in self.history
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Contents of the registry. flows: in file order. problems: a sentence for each entry that was
    left out, with file, line and field.

    unreadable: sentences by the flow's name.
    """

    flows: Mapping[str, Flow]
    problems: tuple[str, ...]
    unreadable: Mapping[str, str]
    removed: frozenset[str]
    seeded: frozenset[str]


def read_document(document: Document, where: str) -> tuple[Snapshot, Mapping[BundleHash, str]]:
    """Read every entry separately.

    Returns:
        The contents, and the digest of each granted bundle by hash.
    Raises:
        DamagedError: a section is no mapping.
    """
    problems: list[str] = []
    unreadable: dict[str, str] = {}
    flows: dict[str, Flow] = {}
    grants: dict[BundleHash, str] = {}
    entries = document.section(FLOWS)
    keys = Counter(entry.key for entry in entries)
    for entry in entries:
        before = len(problems)
        with _noted(problems, where, entry.line):
            if keys[entry.key] > 1:
                raise ValueError(f"{FLOWS}.{entry.key} is there twice; remove one of the two")
            flow = _flow(entry)
            flows[flow.name] = flow
        if len(problems) > before and isinstance(entry.key, str):
            unreadable.setdefault(entry.key, problems[-1])
    for entry in document.section(GRANTS):
        with _noted(problems, where, entry.line):
            hash, granted = _grant(entry)
            grants[hash] = granted
    removed: frozenset[str] = frozenset()
    try:
        removed = removed_names(document, where)
    except DamagedError as exc:
        problems.append(str(exc))
    seeded = seeded_keys(document)
    return Snapshot(
        flows=flows, problems=tuple(problems), unreadable=unreadable, removed=removed, seeded=seeded
    ), grants


def seeded_keys(document: Document) -> frozenset[str]:
    """Return the keys of the sets of shipped flows that were added; a single key may be a text."""
    entry = document.top(SEEDED)
    try:
        found = None if entry is None else entry.value()
    except ValueError:
        found = None
    if isinstance(found, str):
        return frozenset((found,))
    return frozenset(str(key) for key in found) if isinstance(found, list) else frozenset()


def removed_names(document: Document, where: str) -> frozenset[str]:
    """Return the names of flows that a person removed.

    Raises:
        DamagedError: the list cannot be read, and so must not be rewritten.
    """
    entry = document.top(REMOVED)
    if entry is None:
        return frozenset()
    try:
        return frozenset(shapes.texts(entry.value() or [], (REMOVED,)))
    except (shapes.ShapeError, ValueError) as exc:
        raise DamagedError(f"{where}:{entry.line}: {exc}") from exc


@contextmanager
def _noted(problems: list[str], where: str, line: int) -> Iterator[None]:
    """Turn an error of the block into a sentence, so that one entry never hides another."""
    try:
        yield
    except (UncagedError, ValueError) as exc:
        problems.append(f"{where}:{line}: {exc}")


def _flow(entry: Entry) -> Flow:
    name = parse_flow_name(shapes.text(entry.key, (FLOWS,)))
    path = (FLOWS, name)
    try:
        fields = shapes.mapping(entry.value(), path)
    except ValueError as exc:
        raise shapes.ShapeError(path, str(exc)) from exc
    head = _version(fields, path)
    history = fields.get("history") or []
    if not isinstance(history, list):
        raise shapes.ShapeError((*path, "history"), f"must be a list, not {shapes.shown(history)}")
    return Flow(
        name=name,
        hash=head.hash,
        timestamp_ms=head.timestamp_ms,
        history=tuple(
            _version(item, (*path, "history", index)) for index, item in enumerate(history)
        ),
        enabled=shapes.truth(fields.get("enabled", True), (*path, "enabled")),
        source=shapes.text(fields.get("source", "person"), (*path, "source")),
        created_ms=shapes.whole(fields.get("created", head.timestamp_ms), (*path, "created")),
        confirm=shapes.truth(fields.get("confirm", False), (*path, "confirm")),
    )


def _version(value: object, path: shapes.Path) -> Version:
    fields = shapes.mapping(value, path)
    return Version(
        hash=_hash(shapes.required(fields, "hash", path), (*path, "hash")),
        timestamp_ms=shapes.whole(shapes.required(fields, "timestamp", path), (*path, "timestamp")),
    )


def _grant(entry: Entry) -> tuple[BundleHash, str]:
    hash = _hash(entry.key, (GRANTS,))
    path = (GRANTS, hash)
    fields = shapes.mapping(entry.value(), path)
    shapes.mapping(shapes.required(fields, "policy", path), (*path, "policy"))
    return hash, shapes.text(shapes.required(fields, "digest", path), (*path, "digest"))


def _hash(value: object, path: shapes.Path) -> BundleHash:
    if not isinstance(value, str):
        raise shapes.ShapeError(path, f"must be text in quotes, not {shapes.shown(value)}")
    try:
        return parse_bundle_hash(value)
    except UsageError as exc:
        raise shapes.ShapeError(path, str(exc)) from exc
