"""Graph of a flow whose moderator is a function: the function is run in the bundle's sandbox over
the statuses that the roles' schemas allow, and no role is asked.

It may take more edges than are found here, if it looks at more than roles and statuses.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.builders.schema import statuses
from uncaged_bundles.contract import Descriptor
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.validation.validate import Bundle

from ..cells.cell import Cell, CellDied
from ..cells.reply import BundleReply
from ..sandbox.mechanism import Mechanism
from .graphs import END, START, Edge

MOST_RUNS = 200
MOST_STEPS = 12
MOST_VISITS = 3
"""How often a role with one status is followed; a moderator may count rounds."""

MOST_KEPT = 256
_found: dict[BundleHash, tuple[Edge, ...]] = {}
"""The edges found in this process: the bytes of a bundle do not change, and a page that shows a
graph asks for it again and again.
"""

Answers = tuple[tuple[str, str], ...]
"""Roles that answered, each with its status."""


def inferred_edges(bundle: Bundle, mechanism: Mechanism | None, *, deadline_s: float) -> list[Edge]:
    """Return the edges that the moderator takes, in the order in which they are found; nothing for
    a flow that asks no roles, is trusted, or does not continue given steps. Those before a status
    for which it does not answer in time, if there is one.

    Raises:
        SandboxUnavailable: no sandbox can be set up here.
    """
    descriptor = bundle.descriptor
    if bundle.trusted or not descriptor.asked_roles or not descriptor.continues:
        return []
    if (known := _found.get(bundle.hash)) is not None:
        return list(known)
    edges: dict[Edge, None] = {}
    cell = Cell.start(bundle, mechanism)
    try:
        for edge in _walk(cell, descriptor, deadline_s):
            edges[edge] = None
    except CellDied:
        return list(edges)  # not kept: the machine may only have been slow
    finally:
        cell.close()
    if len(_found) >= MOST_KEPT:
        _found.clear()
    _found[bundle.hash] = tuple(edges)
    return list(edges)


def _walk(cell: Cell, descriptor: Descriptor, deadline_s: float) -> Iterator[Edge]:
    waiting: deque[Answers] = deque([()])
    visits: Counter[tuple[str, str]] = Counter()
    for slot in range(1, MOST_RUNS + 1):
        if not waiting:
            return
        path = waiting.popleft()
        role = _next_role(cell, slot, path, descriptor, deadline_s)
        if role is None:
            continue
        yield Edge(*(path[-1] if path else (START, "")), role)
        if role == END or len(path) == MOST_STEPS:
            continue
        for status in statuses(descriptor.roles[role].schema) or ("",):
            if visits[role, status] < MOST_VISITS:
                visits[role, status] += 1
                waiting.append((*path, (role, status)))


def _next_role(
    cell: Cell, slot: int, path: Answers, descriptor: Descriptor, deadline_s: float
) -> str | None:
    """Return the role that is asked after *path*; None if the moderator raised, or asked
    something else.
    """
    reply = cell.ask("S", slot, 0, _start(path, descriptor), deadline_s=deadline_s)
    cell.ask("D", slot, 0, b"", deadline_s=deadline_s)
    return _asked_role(reply, descriptor)


def _asked_role(reply: BundleReply, descriptor: Descriptor) -> str | None:
    if reply.word == "return":
        return END
    if reply.word != "effect":
        return None
    match json.loads(reply.body):
        case {"role": {"name": str(name)}} if name in descriptor.roles:
            return name
        case _:
            return None


def _start(path: Answers, descriptor: Descriptor) -> bytes:
    steps = [
        {
            "role": role,
            "content": "",
            "meta": {**_example(descriptor.roles[role].schema), **({"status": one} if one else {})},
            "timestamp": 0,
        }
        for role, one in path
    ]
    options = {"threadId": "0" * 26, "startedAt": 0, "seed": "0" * 16}
    request = {"input": {"prompt": "", "params": {}, "steps": steps}, "options": options}
    return json.dumps(request).encode()


def _example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the least value of each property of an object's schema."""
    parts = schema.get("properties")
    return (
        {name: _least(part) for name, part in parts.items()} if isinstance(parts, Mapping) else {}
    )


def _least(schema: object) -> Any:
    if not isinstance(schema, Mapping):
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type")
    least: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}
    return _example(schema) if kind == "object" else least.get(str(kind))
