"""Damaged journals: the readers agree, keep the whole lines, and call a journal corrupt if valid
lines are behind the damage.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testbed.journals import Script
from testbed.strategies import scripts
from uncaged_bundles.errors import DamagedError
from uncaged_engine.journal.recover import History, recover, recover_strictly

pytestmark = pytest.mark.slow


def facts(history: History) -> dict[str, Any]:
    found = {field.name: getattr(history, field.name) for field in fields(history)}
    return {**found, "effects": history.effects.hexdigest()}


def both(data: bytes, script: Script) -> History | None:
    """Return the history that both readers give, which must be the same; None if there is none."""
    found: list[dict[str, Any] | None] = []
    history = None
    for read in (recover, recover_strictly):
        try:
            history = read(data, script.bundle, script.thread)
            found.append(facts(history))
        except DamagedError:
            found.append(None)
    assert found[0] == found[1]
    return history if found[0] is not None else None


@given(scripts())
def test_fast_and_strict_reading_agree_on_whole_journals(script: Script) -> None:
    """Both readers find the same history and no damage."""
    history = both(script.data, script)
    assert history is not None
    assert history.damage is None
    assert history.good_bytes == len(script.data)


@settings(max_examples=12)
@given(scripts())
def test_a_torn_tail_at_every_byte_of_the_last_two_records(script: Script) -> None:
    """The whole lines before it are the history; the rest is a tail, never corrupt."""
    borders = [0]
    for line in script.sealed:
        borders.append(borders[-1] + len(line))
    for size in range(borders[max(1, len(borders) - 3)], borders[-1] + 1):
        history = both(script.data[:size], script)
        assert history is not None
        assert history.good_bytes == max(border for border in borders if border <= size)
        assert (history.damage is None) == (size in borders)
        assert history.damage is None or history.damage.tail


@given(scripts(), st.data())
def test_one_flipped_byte(script: Script, data: st.DataObject) -> None:
    """Every line before it stays; it is a tail if it hit the end of the file, and corrupt if whole
    lines follow.
    """
    raw = bytearray(script.data)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    history = both(bytes(raw), script)
    place, start = 0, 0
    while start + len(script.sealed[place]) <= at:
        start += len(script.sealed[place])
        place += 1
    if place == 0:
        assert history is None
        return
    assert history is not None
    assert history.damage is not None
    assert history.good_bytes == start
    behind = len(script.sealed) - 1 - place
    hit_the_line_feed = at == start + len(script.sealed[place]) - 1
    assert history.corrupt == (behind > hit_the_line_feed)


@given(scripts(), st.data())
def test_lines_that_are_repeated_dropped_or_swapped(script: Script, data: st.DataObject) -> None:
    """The readers agree on every change to whole lines, and keep the lines before it."""
    sealed = list(script.sealed)
    place = data.draw(st.integers(0, len(sealed) - 1))
    match data.draw(st.sampled_from(["repeat", "drop", "swap", "nul", "garbage"])):
        case "repeat":
            sealed.insert(place, sealed[place])
        case "drop":
            del sealed[place]
        case "swap":
            sealed[place], sealed[-1] = sealed[-1], sealed[place]
        case "nul":
            sealed[place] = bytes(len(sealed[place]))
        case "garbage":
            sealed.insert(place, data.draw(st.binary(max_size=80)) + b"\n")
        case _:
            pass
    history = both(b"".join(sealed), script)
    whole = 0
    while whole < min(len(sealed), len(script.sealed)) and sealed[whole] == script.sealed[whole]:
        whole += 1
    if whole:
        assert history is not None
        assert history.lines == whole
        assert history.good_bytes == len(b"".join(sealed[:whole]))


@given(st.binary(max_size=400))
def test_bytes_that_were_never_a_journal(raw: bytes) -> None:
    """No reader raises anything but its own error."""
    assert both(raw, Script.begun()) is None
