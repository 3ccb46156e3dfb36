"""Finished steps as handlers get them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.bundles import Placed, place
from testbed.journals import NOW_MS
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.steps.finished import FinishedSteps


class Counted(BlobDirectory):
    """Counts the lines whose records it was asked for."""

    asked = 0

    def get(self, name: str) -> bytes:
        self.asked += 1
        return super().get(name)


@pytest.fixture
def journal(store: Store) -> Iterator[JournalFile]:
    placed: Placed = place(store)
    journal = JournalFile.open(store, placed.bundle.hash, placed.thread)
    yield journal
    journal.close()


def write(journal: JournalFile, seq: int, fields: dict[str, object]) -> None:
    journal.append(lines.intent(seq, b'{"null":{}}', NOW_MS))
    journal.append(lines.step(seq, {"sub": 0, "outcome": "part"}, NOW_MS))
    journal.append(lines.attempt(seq, 2, {"because": "retry"}, NOW_MS))
    journal.append(lines.step(seq, fields, NOW_MS))


def test_all_finished_steps_come_in_order_and_nothing_else(journal: JournalFile) -> None:
    """Intents, attempts, sub-steps and controls are none; what was written since the last question
    is there.
    """
    steps = FinishedSteps(journal)
    assert steps.records() == ()
    for seq in (1, 2):
        write(journal, seq, {"outcome": f"line\r\u2028{seq}"})
        assert [record["outcome"] for record in steps.records()] == [
            f"line\r\u2028{number}" for number in range(1, seq + 1)
        ]
    journal.append(lines.control("note", {}, NOW_MS))
    assert [record["seq"] for record in steps.records()] == [1, 2]


def test_a_step_is_read_once(store: Store, journal: JournalFile) -> None:
    """Each question reads only the lines that are new, however long the thread is; a text in a blob
    is fetched once, too.
    """
    blobs = Counted(store.blobs)
    journal.blobs = blobs
    steps = FinishedSteps(journal)
    write(journal, 1, blobs.spill({"outcome": "x" * 1000}))
    assert [steps.records()[0]["outcome"] for _ in range(3)] == ["x" * 1000] * 3
    assert blobs.asked == 1
    write(journal, 2, {"outcome": 2})
    assert len(steps.records()) == 2
    assert blobs.asked == 1


def test_a_half_written_line_is_no_step_yet(journal: JournalFile) -> None:
    """A line is read whole or not at all; the next question begins where the half line begins."""
    steps = FinishedSteps(journal)
    write(journal, 1, {"outcome": 1})
    assert len(steps.records()) == 1
    with journal.path.open("ab") as file:
        file.write(b'{"seq":2,"outcome":2,')
    assert len(steps.records()) == 1
    with journal.path.open("ab") as file:
        file.write(b'"timestamp":1,"chain":"X"}\n')
    assert len(steps.records()) == 2
