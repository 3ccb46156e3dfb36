"""The life cycle of a thread is one table, and the state is derived from disk and lock alone."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from uncaged_engine.state.states import (
    COMMANDS,
    GONE,
    NEXT_STEP,
    SAME,
    TABLE,
    Event,
    Facts,
    State,
    after,
    allowed,
    refusal,
    status,
)

STATES: tuple[State, ...] = get_args(State)
EVENTS: tuple[Event, ...] = get_args(Event)


def test_the_table_names_every_state_and_leads_nowhere_else() -> None:
    """Each state has a row and a next step for people; each cell is a state, `same` or `gone`."""
    assert set(TABLE) == set(NEXT_STEP) == set(STATES)
    for row in TABLE.values():
        assert set(row) <= set(EVENTS)
        assert set(row.values()) <= {*STATES, SAME, GONE}


def test_every_state_can_be_reached() -> None:
    """From a running thread the events lead to each state."""
    reached: set[str] = {"running"}
    while (
        new := {target for state in STATES if state in reached for target in TABLE[state].values()}
        - reached
    ):
        reached |= new
    assert reached - {SAME, GONE} == set(STATES)


def test_an_event_without_a_cell_leaves_the_state() -> None:
    """Events change a thread that has ended, or that is corrupt, only as the table says."""
    assert [after(state, "crash") for state in STATES] == [
        "interrupted" if state == "running" else state for state in STATES
    ]
    assert {after(state, "damage") for state in STATES} == {"corrupt"}
    assert after("completed", "remove") == "completed", "a thread that is gone has no state"


@pytest.mark.parametrize(
    "cell",
    [
        (state, event)
        for state in STATES
        for event in TABLE[state]
        if event not in (*COMMANDS, "damage")
    ],
)
def test_the_code_follows_the_table(
    cell: tuple[State, Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of a cell changes the status of some journal: the table decides every state."""
    flags = product([False, True], repeat=5)
    every = [
        (Facts(paused=a, waiting=b, lacking=c, undecided=d, unsettled=e), locked)
        for a, b, c, d, e in flags
        for locked in (False, True)
    ]
    every += [
        (Facts(end=word), locked)
        for word in ("completed", "failed", "limit")
        for locked in (False, True)
    ]
    before = [status(facts, locked=locked) for facts, locked in every]
    state, event = cell
    monkeypatch.setitem(TABLE[state], event, "killed")
    changed = [
        (facts, locked)
        for (facts, locked), former in zip(every, before, strict=True)
        if status(facts, locked=locked) != former
    ]
    assert changed


def test_resumable_states_are_the_documented_ones() -> None:
    """Resumable: paused, interrupted, unknown, limit, killed; waiting by answer; nothing else."""
    assert {state for state in STATES if allowed(state, "resume")} == {
        "paused",
        "interrupted",
        "unknown",
        "limit",
        "killed",
    }
    assert {state for state in STATES if allowed(state, "answer")} == {"waiting"}


def test_only_what_does_not_run_can_be_removed_and_all_can_be_forked() -> None:
    """`remove` refuses a live thread; `fork` only reads, so it is never refused."""
    assert {state for state in STATES if not allowed(state, "remove")} == {"running"}
    assert all(allowed(state, "fork") for state in STATES)


def test_what_ended_cannot_be_paused_or_killed() -> None:
    """An end record is left by `resume` or not at all."""
    for state in ("completed", "failed", "killed", "limit", "corrupt"):
        assert not allowed(state, "pause")
        assert not allowed(state, "kill")


@pytest.mark.parametrize(
    ("state", "event"),
    [(state, event) for state, event in product(STATES, COMMANDS) if not allowed(state, event)],
)
def test_a_refusal_says_the_state_and_the_next_step(state: State, event: Event) -> None:
    """A refusal names the thread's state and the commands that are possible."""
    text = refusal(state, event, "01HX")
    assert text.startswith(f"thread 01HX is {state}: it cannot be ")
    assert text.endswith(NEXT_STEP[state])


@pytest.mark.parametrize(
    ("facts", "locked", "expected"),
    [
        (Facts(), True, "running"),
        (Facts(), False, "interrupted"),
        (Facts(paused=True), True, "running"),
        (Facts(paused=True), False, "paused"),
        (Facts(lacking=True), False, "paused"),
        (Facts(waiting=True), False, "waiting"),
        (Facts(waiting=True, paused=True), False, "paused"),
        (Facts(undecided=True), False, "unknown"),
        (Facts(undecided=True), True, "running"),
        (Facts(undecided=True, paused=True), False, "unknown"),
        (Facts(undecided=True, lacking=True), False, "paused"),
        (Facts(undecided=True, end="killed"), False, "killed"),
        (Facts(unsettled=True), False, "unknown"),
        *(
            (Facts(end=word), locked, word)
            for word in ("completed", "failed", "killed", "limit")
            for locked in (True, False)
        ),
        (Facts(end="completed", corrupt=True), False, "corrupt"),
        (Facts(end="strange"), False, "corrupt"),
    ],
)
def test_the_state_follows_from_disk_and_lock(facts: Facts, locked: bool, expected: State) -> None:
    """Damage comes first, then the end record, then a held lock, then an open effect, then the
    controls.
    """
    assert status(facts, locked=locked) == expected
