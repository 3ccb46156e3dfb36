"""Checks of a moderator's table: it handles every status of every role, reaches every role, and can
end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uncaged_bundles.authoring import Graph
from uncaged_bundles.carried.workflow import END, START
from uncaged_bundles.shapes import shown

from .schema import statuses

Edges = Mapping[str, list[tuple[str, object]]]
GraphLiteral = dict[str, str | dict[str, str | list[str]]]


def check_table(
    table: Graph, schemas: Mapping[str, Mapping[str, object]], *, several: bool = False
) -> tuple[str, ...]:
    """Return the problems of *table*, one sentence each.

    Args:
        schemas: the JSON Schema of each role by name.
        several: a status may lead to several roles, as in the graph of a function.
    """
    edges = {role: list(_edges(row, several=several)) for role, row in table.items()}
    return (
        *_shape_problems(table, edges, schemas),
        *_status_problems(table, schemas),
        *_reach_problems(table, edges, schemas),
    )


def write_graph(table: Graph) -> GraphLiteral:
    """Return *table* for the descriptor: START first, then its rows in their order."""
    rows: GraphLiteral = {}
    for role, row in table.items():
        rows[role] = (
            row
            if isinstance(row, str)
            else {status: to if isinstance(to, str) else list(to) for status, to in row.items()}
        )
    return {START: rows.pop(START), **rows}


def _shape_problems(table: Graph, edges: Edges, schemas: Mapping[str, object]) -> Iterator[str]:
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
        for status, target in edges[role] if role != START or isinstance(row, str) else ():
            if not isinstance(target, str) or (target not in schemas and target != END):
                yield f"{_edge(role, status)} leads to {shown(target)}, which is no role; there are: {', '.join(schemas)} (and END)"


def _status_problems(table: Graph, schemas: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
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


def _reach_problems(table: Graph, edges: Edges, schemas: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(table.get(START), str):
        return  # reported already, and everything would be unreachable
    reached = {START}
    pending: list[str] = [START]
    while pending:
        for _, target in edges.get(pending.pop(), ()):
            if isinstance(target, str) and target not in reached:
                reached.add(target)
                pending.append(target)
    for role in schemas:
        if role not in reached:
            yield f"role {role!r} is never reached from START"
    if END not in reached:
        yield "END is never reached from START: no run could ever complete"


def _edges(row: object, *, several: bool) -> Iterator[tuple[str, object]]:
    if isinstance(row, Mapping):
        for status, targets in row.items():
            for target in (
                targets if several and isinstance(targets, list | tuple) and targets else [targets]
            ):
                yield status, target
    else:
        yield "", row


def _edge(role: str, status: str) -> str:
    name = "START" if role == START else repr(role)
    return f"{name} with status {status!r}" if status else name
