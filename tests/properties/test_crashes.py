"""Power cuts: whatever a flow yields and wherever the power goes out, no step is lost, and no
effect is performed twice without a line that says so.
"""

from __future__ import annotations

from _blake2 import blake2b
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from testbed.journals import Script, fields_of, records_of
from testbed.looping import Crash, Table, marks_of
from testbed.strategies import flow, plans
from uncaged_engine.journal import lines

pytestmark = pytest.mark.slow

Plan = list[Mapping[str, Any]]
MOST_CRASHES = 300


def run_through(plan: Plan) -> Table:
    table = Table()
    assert table.play(flow(plan)) == "completed"
    return table


def essence(script: Script) -> list[dict[str, Any]]:
    """Return what a thread did, without who did it and in how many tries."""
    return [
        fields_of(one)
        for one in records_of(script.data)
        if not {"attempt", "void", "control"} & set(one)
    ]


def check(table: Table, plan: Plan) -> None:
    history = table.history()
    assert history.damage is None
    assert history.end is not None
    assert essence(table.script) == essence(run_through(plan).script)
    said = Counter(record["seq"] for record in records_of(table.script.data) if "because" in record)
    for seq, times in Counter(seq for seq, _ in table.performed).items():
        assert times <= 1 + said[seq], (
            f"step {seq} was performed {times} times, and {said[seq]} lines say so"
        )


@given(plans)
def test_replay_equals_run(plan: Plan) -> None:
    """The effects that the journal holds are those that the same code yields again for the same
    outcomes.
    """
    table = run_through(plan)
    history = table.history()
    marks = marks_of(flow(plan), table)
    digest = blake2b(digest_size=16)
    for mark in marks:
        digest.update(mark + b"\n")
    assert digest.hexdigest() == history.effects.hexdigest()


@pytest.mark.parametrize("power_cut", [False, True])
@settings(max_examples=25)
@given(plan=plans)
def test_one_crash_at_every_command(power_cut: bool, plan: Plan) -> None:
    """Killed before any command of the loop, or with all that was not flushed lost: the next owner
    brings it to the same end.
    """
    for place in range(min(MOST_CRASHES, len(run_through(plan).commands))):
        table = Table(crash_at=place)
        with pytest.raises(Crash):
            table.play(flow(plan))
        if power_cut:
            table.lose_what_was_not_flushed()
        table.crash_at = None
        assert table.play(flow(plan)) == "completed"
        check(table, plan)


@settings(max_examples=25)
@given(plan=plans)
def test_a_crash_after_every_few_commands(plan: Plan) -> None:
    """An owner that dies after every third command still gets somewhere, and never silently
    twice.
    """
    table = Table()
    for _ in range(MOST_CRASHES):
        table.crash_at = len(table.commands) + 3
        try:
            word = table.play(flow(plan))
            break
        except Crash:
            continue
    else:
        pytest.fail("no progress")
    assert word == "completed"
    check(table, plan)


@given(plans)
def test_the_order_of_writing_and_flushing(plan: Plan) -> None:
    """No effect is performed before its intent was flushed (the table asserts it), and each step
    needs one flush, not more.
    """
    table = run_through(plan)
    shapes = [lines.shape_of(line)[0] for line in table.script.sealed]
    outputs = sum(
        lines.shape_of(line)[0] == "step" and lines.is_role_step(line)
        for line in table.script.sealed[1:]
    )
    failures = sum(b'"error":' in line for line in table.script.sealed[1:])
    flushes = sum(getattr(command, "flush", False) for command in table.commands)
    assert flushes == shapes.count("intent") + outputs + failures + 1


def test_the_harness_sees_a_silent_repetition() -> None:
    """A positive control: with the attempt line taken out of a journal, the check fails."""
    plan: Plan = [{"null": {"value": 1}}]
    table = Table(crash_at=2)
    with pytest.raises(Crash):
        table.play(flow(plan))
    table.crash_at = None
    table.play(flow(plan))
    check(table, plan)
    kept = [line for line in table.script.sealed if b'"attempt"' not in line]
    table.script = Script.begun()
    for line in kept[1:]:
        table.script.add(line.rpartition(b',"chain"')[0])
    if table.performed == [(1, 2)]:  # the first try was cut off before it was performed
        table.performed.insert(0, (1, 1))
    with pytest.raises(AssertionError, match="performed 2 times"):
        check(table, plan)
