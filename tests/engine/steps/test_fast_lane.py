"""The fast lane takes ordinary steps only; whatever else the bundle's side says is handed to the
loop as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from testbed.bundles import place
from testbed.journals import NOW_MS
from testbed.looping import Table
from uncaged_bundles.storage.store import Store
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.door.outcomes import Answer, Outcome
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.steps.commands import Perform, StepProgress
from uncaged_engine.steps.fast_lane import FastLane

ORDINARY = b'{"null":{"value":1}}'


class Session:
    """A bundle's side that says what a test wants."""

    def __init__(self, *said: BundleReply) -> None:
        self._said = iter(said)
        self.heard: list[tuple[int, bytes]] = []

    def ask(self, seq: int, line: bytes) -> BundleReply:
        self.heard.append((seq, line))
        return next(self._said)


@pytest.fixture
def journal(store: Store) -> Iterator[JournalFile]:
    placed = place(store)
    with closing(JournalFile.open(store, placed.bundle.hash, placed.thread)) as journal:
        yield journal


def lane_of(journal: JournalFile, session: Session, performed: list[Perform]) -> FastLane:
    def perform(command: Perform) -> Outcome:
        performed.append(command)
        return Answer(fields={"outcome": command.seq})

    return FastLane(
        context=Table(), journal=journal, ask=session.ask, perform=perform, clock_ms=lambda: NOW_MS
    )


def test_ordinary_steps_are_finished_one_after_the_other(journal: JournalFile) -> None:
    """The lane goes on until the bundle returns, and says how far it came."""
    performed: list[Perform] = []
    session = Session(
        BundleReply("effect", ORDINARY),
        BundleReply("effect", ORDINARY),
        BundleReply("return", b"null"),
    )
    before = journal.size_bytes
    assert lane_of(journal, session, performed).ask(4, b"the fourth") == StepProgress(
        BundleReply("return", b"null"), 6
    )
    assert [command.seq for command in performed] == [5, 6]
    assert [seq for seq, _ in session.heard] == [4, 5, 6]
    assert [lines.shape_of(line)[0] for line in journal.read(before).splitlines()] == [
        "intent",
        "step",
    ] * 2


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[1]",
        b"{}",
        b'{"null":{},"now":{}}',
        b'{"null": {}}',
        b'{"null":{},"null":{}}',
        b'{"null":NaN}',
        b'{"null":1e5}',
        b'{"null":"\xff"}',
        b'{"null":"\\ud800"}',
        b'{"null":' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"null":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"output":{"role":"r","content":"c","meta":{}}}',
        b'{"role":{"name":"coder"}}',
    ],
)
def test_what_a_process_should_not_have_sent_is_left_to_the_loop(
    journal: JournalFile, raw: bytes
) -> None:
    """Anything but one canonical effect, and every effect that counts as a round: nothing is
    written, nothing performed.
    """
    performed: list[Perform] = []
    session = Session(BundleReply("effect", raw))
    before = journal.size_bytes
    assert lane_of(journal, session, performed).ask(1, b"the first") == StepProgress(
        BundleReply("effect", raw), 1
    )
    assert (performed, journal.size_bytes) == ([], before)
