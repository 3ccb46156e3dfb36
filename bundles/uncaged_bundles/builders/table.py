"""A table that passes here answers every status of every role, reaches every role, and can come to an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uncaged_bundles.authoring import Table
from uncaged_bundles.carried.workflow import END, START
from uncaged_bundles.shapes import shown

from .schema import statuses

Graph = dict[str, str | dict[str, str]]


def check_table(table: Table, schemas: Mapping[str, Mapping[str, object]]) -> tuple[str, ...]:
    """Return everything that is wrong with *table*, one sentence each; *schemas* holds the frozen schema of each role by name."""
    return (*_shape_problems(table, schemas), *_status_problems(table, schemas), *_reach_problems(table, schemas))


def write_graph(table: Table) -> Graph:
    """Return *table* as it stands in the descriptor: START first, then its rows in their order."""
    rows: Graph = {role: row if isinstance(row, str) else dict(row) for role, row in table.items()}
    return {START: rows.pop(START), **rows}


def _shape_problems(table: Table, schemas: Mapping[str, object]) -> Iterator[str]:
    if START not in table:
        yield "START has no row: say which role comes first"
    elif not isinstance(table[START], str):
        yield f"START leads to {shown(table[START])}: it must name one role, since there is no status yet"
    for role in table:
        if role != START and role not in schemas:
            yield f"row {role!r} is no role; there are: {', '.join(schemas)}"
    for role in schemas:
        if role not in table:
            yield f"role {role!r} has no row: say where it leads"
    for role, row in table.items():
        for status, target in _edges(row) if role != START or isinstance(row, str) else ():
            if not isinstance(target, str) or (target not in schemas and target != END):
                yield f"{_edge(role, status)} leads to {shown(target)}, which is no role; there are: {', '.join(schemas)} (and END)"


def _status_problems(table: Table, schemas: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for role, row in table.items():
        if role not in schemas or not isinstance(row, Mapping):
            continue
        allowed = statuses(schemas[role])
        if allowed is None:
            yield f"role {role!r} goes by its status, but its schema has no `status` with an enum: list the words that it may be"
            continue
        for status in allowed:
            if status not in row:
                yield f"role {role!r} may answer with status {status!r}, and no edge handles it"
        for status in row:
            if status not in allowed:
                yield f"role {role!r} has an edge for status {status!r}, which its schema does not allow; it allows: {', '.join(allowed)}"


def _reach_problems(table: Table, schemas: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(table.get(START), str):
        return  # said already, and everything would be unreachable
    reached = {START}
    pending: list[str] = [START]
    while pending:
        for _, target in _edges(table.get(pending.pop(), {})):
            if isinstance(target, str) and target not in reached:
                reached.add(target)
                pending.append(target)
    for role in schemas:
        if role not in reached:
            yield f"role {role!r} is never reached from START"
    if END not in reached:
        yield "END is never reached from START: no run could ever complete"


def _edges(row: str | Mapping[str, str]) -> Iterator[tuple[str, object]]:
    if isinstance(row, Mapping):
        yield from row.items()
    else:
        yield "", row


def _edge(role: str, status: str) -> str:
    name = "START" if role == START else repr(role)
    return f"{name} with status {status!r}" if status else name
