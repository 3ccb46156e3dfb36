"""Cells with bundles that skipped validation, to test the sandbox without the syntax rules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uncaged_bundles.contract import parse_descriptor
from uncaged_bundles.ids import bundle_hash
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.cells.cell import Cell, CellLimits
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.sandbox.mechanism import Mechanism, choose

MECHANISMS = ("bubblewrap", "landlock")
LANDLOCK_VERSIONS = tuple(f"landlock-{number}" for number in range(1, 8))
WALLS = (*MECHANISMS, *LANDLOCK_VERSIONS)
"""Every sandbox that a bundle may meet: an older kernel's Landlock is this one's, asked for no more
than that version denies.
"""
DEADLINE_S = 20.0
START = b'{"input":{"prompt":"do it","params":{},"steps":[]},"options":{"threadId":"T","startedAt":1714963200000,"seed":7}}'


def unchecked(source: str | bytes, *, trusted: bool = False) -> Bundle:
    """A bundle of exactly this source, whatever it is."""
    data = source if isinstance(source, bytes) else source.encode()
    policy: dict[str, object] = {"trusted": True} if trusted else {}
    raw = {
        "contract": 1,
        "name": "test",
        "description": "A test.",
        "kind": "script",
        "parameters": {},
        "roles": {},
        "policy": policy,
    }
    return Bundle(
        hash=bundle_hash(data),
        source=data,
        descriptor=parse_descriptor({**raw, "continues": False}),
    )


def version_of(name: str) -> int:
    """The number in ``landlock-3``."""
    return int(name.removeprefix("landlock-"))


def mechanism_for(name: str) -> Mechanism:
    """The sandbox of that name, one of WALLS or ``auto``."""
    if name in LANDLOCK_VERSIONS:
        return Mechanism(name="landlock", machine=os.uname().machine, landlock_abi=version_of(name))
    return choose(name)


@contextmanager
def cell_for(
    source: str | bytes, mechanism: str = "auto", limits: CellLimits | None = None
) -> Iterator[Cell]:
    """A cell with that bundle in it; ``none`` makes the bundle a trusted one."""
    trusted = mechanism == "none"
    cell = Cell.start(
        unchecked(source, trusted=trusted),
        None if trusted else mechanism_for(mechanism),
        limits=limits or CellLimits(),
    )
    try:
        yield cell
    finally:
        cell.close()


def begin(cell: Cell, slot: int = 1, start: bytes = START) -> BundleReply:
    return cell.ask("S", slot, 0, start, deadline_s=DEADLINE_S)


def go_on(cell: Cell, seq: int, outcome: object, slot: int = 1) -> BundleReply:
    return cell.send_outcome(slot, seq, step_line(seq, outcome=outcome), deadline_s=DEADLINE_S)


def step_line(seq: int, **fields: object) -> bytes:
    """A sealed step line; its chain is not true, but the child does not look at it."""
    return (
        json.dumps(
            {"seq": seq, **fields, "timestamp": 1, "chain": "0" * 20}, separators=(",", ":")
        ).encode()
        + b"\n"
    )


def value_of(expression: str, mechanism: str = "auto", *, before: str = "") -> Any:
    """Return the value of an expression inside a cell."""
    source = f"{before}\ndef run(input, options):\n    yield {{'null': {expression}}}\n"
    with cell_for(source, mechanism) as cell:
        reply = begin(cell)
    assert reply.word == "effect", reply.body
    return json.loads(reply.body)["null"]


def error_of(reply: BundleReply) -> Mapping[str, str]:
    assert reply.word == "raise", reply
    error: Mapping[str, str] = json.loads(reply.body)
    return error
