"""Flows and grants as rows of the registry's index."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence

from ..ids import BundleHash
from ..names import FlowName
from ..records import dataclass
from .index import Index, IndexMismatch, IndexRow
from .snapshot import FLOWS, GRANTS, Flow, Snapshot, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChanges:
    """Flows that a reader has not seen. state: digest of the registry's text. changed: the new or
    changed ones by their seal. seals: of all readable flows. names: of the flows that were added,
    changed or removed; None if only a comparison with the seals tells. The seals are left out then.
    """

    state: str
    changed: Mapping[str, Flow]
    seals: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None


def flow_row(flow: Flow, span: tuple[int, int], lines: bytes) -> IndexRow:
    """Make the row of a flow whose entry has these *lines*, at *span*."""
    history = [(version.hash, version.timestamp_ms) for version in flow.history]
    fields = (
        flow.hash,
        flow.timestamp_ms,
        flow.enabled,
        flow.source,
        flow.created_ms,
        flow.unsupported,
        flow.confirm,
        *history,
    )
    return IndexRow.sealed(FLOWS, flow.name, span, json.dumps(fields), lines)


def grant_row(hash: BundleHash, digest: str, span: tuple[int, int], lines: bytes) -> IndexRow:
    """Make the row of a grant."""
    return IndexRow.sealed(GRANTS, hash, span, json.dumps(digest), lines)


def flow_of(row: IndexRow) -> Flow:
    """Return the flow of a row.

    Raises:
        IndexMismatch: the row has none.
    """
    return flows_of([row])[0]


def flows_of(rows: Sequence[IndexRow]) -> list[Flow]:
    """Return the flows of rows.

    Raises:
        IndexMismatch: a row has none.
    """
    try:
        # once for all: half the time for ten thousand
        values = json.loads(f"[{','.join([row.value for row in rows])}]")
        return [
            Flow(
                name=FlowName(row.key),
                hash=BundleHash(hash),
                timestamp_ms=timestamp_ms,
                history=tuple(
                    [
                        Version(hash=BundleHash(former), timestamp_ms=then)
                        for former, then in history
                    ]
                ),
                enabled=enabled,
                source=source,
                created_ms=created_ms,
                unsupported=unsupported,
                confirm=confirm,
            )
            for row, (
                hash,
                timestamp_ms,
                enabled,
                source,
                created_ms,
                unsupported,
                confirm,
                *history,
            ) in zip(rows, values, strict=True)
        ]
    except (ValueError, TypeError, RecursionError) as exc:
        raise IndexMismatch from exc


def find_flow(index: Index, name: str) -> Flow | None:
    """Return one flow.

    Raises:
        IndexMismatch: the index was damaged.
    """
    row = index.get(FLOWS, name)
    return None if row is None else flow_of(row)


def changes_of(index: Index, known: Collection[str]) -> RegistryChanges:
    """Return the flows whose seals are not known.

    Raises:
        IndexMismatch: the index was damaged.
    """
    seals, rows = index.changed(FLOWS, known)
    changed = dict(zip([row.seal for row in rows], flows_of(rows), strict=True))
    return RegistryChanges(state=index.head.text, seals=tuple(seals), changed=changed)


def changes_since(
    index: Index, state: object, known: Callable[[], Collection[str]]
) -> RegistryChanges:
    """Return the changes since the text with the digest *state*: of the flows that the index names,
    or else of all whose seals are not known.

    Raises:
        IndexMismatch: the index was damaged.
    """
    names = index.head.names_since(state)
    if names is None:
        return changes_of(index, known())
    rows = [row for name in names if (row := index.get(FLOWS, name)) is not None]
    changed = dict(zip([row.seal for row in rows], flows_of(rows), strict=True))
    return RegistryChanges(state=index.head.text, changed=changed, names=names)


def is_granted(index: Index, hash: BundleHash, digest: str) -> bool:
    """Tell whether the text grants the bundle with this hash and digest.

    The index only locates the grant: the digest must be in those lines of the text themselves.

    Raises:
        IndexMismatch: the index was damaged.
    """
    row = index.get(GRANTS, hash)
    return (
        row is not None
        and row.value == json.dumps(digest)
        and digest.encode() in index.lines_of(row)
    )


def snapshot_of(index: Index) -> Snapshot:
    """Return the whole contents.

    Raises:
        IndexMismatch: the index was damaged.
    """
    head = index.head
    return Snapshot(
        flows={
            flow.name: flow
            for flow in flows_of(sorted(index.rows(FLOWS), key=lambda row: row.start))
        },
        problems=head.problems,
        unreadable=head.unreadable,
        removed=frozenset(head.removed or ()),
        seeded=frozenset(head.seeded),
    )
