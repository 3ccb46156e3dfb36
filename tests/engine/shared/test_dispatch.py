"""Exchanges among a journal's lines."""

from __future__ import annotations

from testbed.journals import Script
from testbed.stored_threads import script
from uncaged_engine.shared.dispatch import ExchangeReader, ThreadExchange


def exchanges(lines: list[bytes]) -> list[ThreadExchange]:
    reader = ExchangeReader()
    return [one for line in lines if (one := reader.read(line)) is not None]


def test_each_finished_step_is_an_exchange_with_its_kind_and_digest() -> None:
    """Intents, controls and the start are none; the digest is that of the step's line."""
    lines = script(steps=3).sealed
    found = exchanges(lines)
    assert [(one.seq, one.kind) for one in found] == [(1, "null"), (2, "null"), (3, "null")]
    assert len({one.digest for one in found}) == 3
    assert all(len(one.digest) == 24 for one in found)


def test_a_later_owner_reads_the_same_exchanges() -> None:
    """The lines decide alone: a reader of all of them finds what two readers of parts found."""
    lines = script(steps=3).sealed
    cut = 5  # start, and two whole steps
    assert exchanges(lines) == exchanges(lines[:cut]) + exchanges(lines[cut:])


def test_a_step_of_the_bundle_itself_has_the_kind_output() -> None:
    """It has no intent."""
    found = Script.begun(script().bundle, script().thread)
    found.output(1)
    assert [one.kind for one in exchanges(found.sealed)] == ["output"]
