"""Performer of effects: each effect has exactly one outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.bundles import Placed, place
from testbed.journals import NOW_MS, fields_of, records_of
from uncaged_bundles.storage.store import Store
from uncaged_engine.costs.spending import Spending
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.outcomes import Answer, Failure, Void, Wait
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.usage import NOTHING
from uncaged_engine.settings.loading import load
from uncaged_engine.state.observe import view
from uncaged_engine.steps.commands import Perform
from uncaged_engine.steps.performer import Performer, Retry


@pytest.fixture
def placed(store: Store) -> Placed:
    return place(store)


@pytest.fixture
def journal(store: Store, placed: Placed) -> Iterator[JournalFile]:
    journal = JournalFile.open(store, placed.bundle.hash, placed.thread)
    yield journal
    journal.close()


@pytest.fixture
def performer(store: Store, placed: Placed, journal: JournalFile) -> Performer:
    journal.append(lines.intent(1, b'{"null":{}}', NOW_MS))
    cancel = Cancel()
    return Performer(
        store=store,
        bundle=placed.bundle,
        config=load(store),
        thread=placed.thread,
        journal=journal,
        start=journal.history.start,
        environment={},
        directory=Path("/"),
        cancel=cancel,
        spending=Spending(limits={}, before=NOTHING, ran_s=0, cancel=cancel),
        progress=lambda _fields: None,
        clock_ms=lambda: NOW_MS,
        notify=lambda _notification: None,
    )


def added(placed: Placed) -> list[dict[str, object]]:
    return [fields_of(record) for record in records_of(placed.path.read_bytes())[2:]]


def test_an_effect_that_nothing_here_can_perform_is_a_lack_of_the_machine(
    performer: Performer,
) -> None:
    """The bundle gets no error, since it is not to blame; the thread is resumed once the missing
    program is installed.
    """
    outcome = performer.perform(Perform(1, "teleport", {}, 1, NOW_MS))
    assert isinstance(outcome, Void)
    assert outcome.word == "environment"
    assert "teleport" in outcome.message


def test_a_retry_is_an_attempt_line_before_it_happens(performer: Performer, placed: Placed) -> None:
    """As often as the effect asks, numbered from 2, with the failure that made it necessary; the
    last failure is the outcome.
    """
    body = {"fail": "no", "retry": {"times": 2, "pause_s": 0}}
    outcome = performer.perform(Perform(1, "null", body, 1, NOW_MS))
    assert outcome == Failure.of("null", "no")
    assert added(placed) == [
        {
            "seq": 1,
            "attempt": number,
            "because": "retry",
            "error": {"kind": "null", "message": "no"},
        }
        for number in (2, 3)
    ]


def test_a_large_attempt_stands_in_a_blob(
    performer: Performer, store: Store, placed: Placed, journal: JournalFile
) -> None:
    """An agent's answer that has to be repaired may be megabytes; its line is short, and readers
    see the whole.
    """
    performer.record_attempt(
        performer._context(1, "role", 1), {"because": "extract", "answer": "a" * (1 << 20)}
    )
    assert len(placed.path.read_bytes().splitlines()[-1]) < 500
    pending = journal.reread().open
    assert pending is not None
    assert pending.tries == 2
    assert view(store, placed.bundle.hash, placed.thread, placed.path).records[-1][
        "answer"
    ] == "a" * (1 << 20)


def test_an_interrupted_effect_has_fewer_tries_left(performer: Performer, placed: Placed) -> None:
    """Attempts that a crash used up count."""
    performer.perform(
        Perform(1, "null", {"fail": "no", "retry": {"times": 2, "pause_s": 0}}, 2, NOW_MS)
    )
    assert [record["attempt"] for record in added(placed)] == [3]


def test_a_retry_for_other_errors_does_not_apply(performer: Performer, placed: Placed) -> None:
    """Only the kinds that it names."""
    performer.perform(
        Perform(1, "null", {"fail": "no", "retry": {"times": 2, "on": ["timeout"]}}, 1, NOW_MS)
    )
    assert added(placed) == []


@pytest.mark.parametrize(
    "retry",
    [5, {"often": 1}, {"times": -1}, {"times": 21}, {"times": True}, {"on": "x"}, {"pause_s": 61}],
)
def test_a_malformed_retry_is_a_failure(performer: Performer, retry: object) -> None:
    """The bundle hears what is wrong; nothing is performed."""
    outcome = performer.perform(Perform(1, "null", {"value": 1, "retry": retry}, 1, NOW_MS))
    assert isinstance(outcome, Failure)
    assert outcome.error["kind"] == "effect"
    assert "retry" in str(outcome.error["message"])


def test_a_label_is_for_people_and_no_handler_sees_it(performer: Performer) -> None:
    """Any effect may have one; a handler refuses what it does not know, and does not refuse
    this.
    """
    assert performer.perform(
        Perform(1, "ask", {"question": "q", "label": "block 1 of 2"}, 1, NOW_MS)
    ) == Wait(details={"question": "q"})


def test_without_a_retry_nothing_is_tried_again() -> None:
    """The default is once."""
    assert Retry.of({"value": 1}) == Retry(times=0, on=frozenset(), pause_s=0)


def test_a_sub_step_is_on_disk_when_its_outcome_is_known(
    performer: Performer, placed: Placed, journal: JournalFile
) -> None:
    """Each effect inside an `all` costs a line and a flush; an effect that the policy lacks is
    refused there too.
    """
    effects = [{"null": {"value": "a"}}, {"now": {}}, {"null": {"fail": "no"}}]
    outcome = performer.perform(Perform(1, "all", {"effects": effects, "limit": 1}, 1, NOW_MS))
    assert isinstance(outcome, Answer)
    assert [next(iter(one)) for one in outcome.fields["outcome"]] == ["outcome", "error", "error"]  # type: ignore[attr-defined]
    assert journal.flushed_bytes == placed.path.stat().st_size
    lines_of = added(placed)
    assert [record["sub"] for record in lines_of] == [0, 1, 2]
    assert lines_of[1]["error"]["kind"] == "policy"  # type: ignore[index]
    assert journal.reread().damage is None


def test_what_an_earlier_owner_finished_inside_an_effect_is_not_performed_again(
    performer: Performer, placed: Placed, journal: JournalFile
) -> None:
    """Sub-steps that have a line are taken from there; the others are performed."""
    journal.append(lines.step(1, {"sub": 1, "outcome": "from before"}, NOW_MS))
    performer.restore(journal.reread())
    outcome = performer.perform(
        Perform(1, "all", {"effects": [{"null": {"value": n}} for n in range(3)]}, 2, NOW_MS)
    )
    assert outcome == Answer(
        fields={"outcome": [{"outcome": 0}, {"outcome": "from before"}, {"outcome": 2}]}
    )
    assert sorted(record["sub"] for record in added(placed)) == [0, 1, 2]  # type: ignore[type-var]
