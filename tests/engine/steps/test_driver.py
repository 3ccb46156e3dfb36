"""A word from outside is obeyed, or refused because the thread was left; it is never taken and then
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import PLANNED, Placed, place
from testbed.interleaving import just_after, just_before
from testbed.journals import NOW_MS, records_of
from testbed.memory import MemoryThread
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.cells.cell import CellLimits
from uncaged_engine.cells.shared import Cells, start_cells
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.journal import Journal
from uncaged_engine.journal.lock import is_live
from uncaged_engine.notify.sender import Delivery, Sender
from uncaged_engine.settings.loading import load
from uncaged_engine.state.observe import summarise
from uncaged_engine.steps.driver import Driver
from uncaged_engine.steps.request import DriveRequest, WorkerContext

PATIENT_MS = 20_000
LARGE = lines.SPILL_BYTES + 1000
EVENTFUL = [
    {"null": {"value": 1}},
    {"null": {"value": "v", "times": LARGE}},
    {"null": {"fail": "no"}},
    {"null": {"value": "v" * LARGE, "lack": "a tool"}},
    {"output": {"role": "r", "content": "c", "meta": {}}},
    {"null": {"lack": "another tool"}},
    {"null": {"value": 2}},
]
"""Effects of every way to the journal: a blob for an outcome and for an effect, a failure, an
output, and two that are performed by a later owner.
"""
LEFT = {"waiting": {"wait": True}, "paused": {"lack": "a tool"}}
"""Effects that a thread is left with, and its state then."""


@pytest.fixture
def begin(store: Store) -> Iterator[Callable[..., tuple[Placed, Driver]]]:
    """Take up a thread that yields these effects, in this very process."""
    begun: list[Any] = []

    def take(*plan: object, sender: Sender | None = None) -> tuple[Placed, Driver]:
        placed = place(store, PLANNED, params={"plan": list(plan)})
        cells = start_cells(placed.bundle, "auto", limits=CellLimits(), begun=None)
        worker = WorkerContext(
            store=store,
            cells=cells,
            clock_ms=lambda: NOW_MS,
            publish=lambda _thread, _event: None,
            sender=sender,
        )
        journal = JournalFile.open(store, placed.bundle.hash, placed.thread)
        driver = Driver(
            thread=placed.thread,
            slot=1,
            journal=journal,
            request=DriveRequest(),
            config=load(store),
            worker=worker,
        )
        begun.extend((driver, cells))
        return placed, driver

    yield take
    for one in begun:
        one.close()


def last_of(placed: Placed) -> list[str]:
    """The words of the last two records: what a void or an end is called."""
    return [
        str(one.get("void") or one.get("end") or one.get("control"))
        for one in records_of(placed.path.read_bytes())[-2:]
    ]


@pytest.mark.parametrize("word", LEFT)
def test_a_kill_that_comes_as_the_thread_is_left_is_carried_out(
    word: str, begin: Callable[..., tuple[Placed, Driver]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill that was confirmed after the loop last looked for one ends the thread as killed."""
    placed, driver = begin({"null": LEFT[word]})
    just_before(monkeypatch, Driver, "_leave", driver.kill)
    assert driver.run() == "killed"
    assert last_of(placed) == ["killed" if word == "waiting" else "environment", "killed"]


@pytest.mark.parametrize("word", LEFT)
def test_whoever_comes_after_that_hears_of_it(
    word: str, begin: Callable[..., tuple[Placed, Driver]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is left, though its lock is still held: the word is refused, and the caller does
    it by himself.
    """
    _, driver = begin({"null": LEFT[word]})
    refused: list[str] = []

    def too_late() -> None:
        for act in (driver.kill, driver.pause):
            with pytest.raises(NotFoundError, match="was left just now"):
                act()
            refused.append(act.__name__)

    just_after(monkeypatch, Driver, "_leave", too_late)
    assert driver.run() == word
    assert refused == ["kill", "pause"]


def test_a_pause_that_comes_after_the_end_was_written_is_refused(
    begin: Callable[..., tuple[Placed, Driver]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused pause leaves no line in the journal."""
    placed, driver = begin()
    refused: list[bool] = []

    def too_late() -> None:
        with pytest.raises(NotFoundError, match="has ended"):
            driver.pause()
        refused.append(True)

    just_before(monkeypatch, Driver, "_leave", too_late)
    assert driver.run() == "completed"
    assert refused
    assert last_of(placed)[1] == "completed"


def test_a_thread_that_was_paused_before_its_worker_came_stays_paused(
    store: Store, begin: Callable[..., tuple[Placed, Driver]]
) -> None:
    """A pause that is in the journal before the start or answer arrives is obeyed."""
    placed, first = begin({"null": {"value": 1}})
    first.close()
    with closing(JournalFile.open(store, placed.bundle.hash, placed.thread)) as journal:
        journal.append(lines.control("pause", {}, NOW_MS))
    again = Driver(
        thread=placed.thread,
        slot=2,
        journal=JournalFile.open(store, placed.bundle.hash, placed.thread),
        request=DriveRequest(),
        config=load(store),
        worker=first._worker,
    )
    with closing(again), pytest.raises(RefusedError, match="was paused just now"):
        again.accept()
    assert summarise(store, placed.bundle.hash, placed.thread, placed.path).status == "paused"


class LookingSender(Sender):
    """A sender that looks at a thread's lock instead. were_live: what it saw each time."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path()
        self.were_live: list[bool] = []

    def send(self, delivery: Delivery) -> bool:  # noqa: ARG002 - it delivers nothing
        self.were_live.append(is_live(self.path))
        return True


def test_a_status_is_notified_of_once_the_thread_is_left(
    store: Store, begin: Callable[..., tuple[Placed, Driver]]
) -> None:
    """A person who is notified of a failure finds a thread that can be resumed."""
    store.config_path.write_text("notify: {command: [notify-me]}\n")
    sender = LookingSender()
    placed, driver = begin("raise", sender=sender)
    sender.path = placed.path
    assert driver.run() == "failed"
    assert not sender.were_live
    driver.close()
    assert sender.were_live == [False]


def drive_over(
    open_journal: Callable[[], Journal], store: Store, placed: Placed, cells: Cells
) -> tuple[list[str], list[object], bytes]:
    """Drive a thread with three owners; return how each left it, what followers learned, and the
    journal.
    """
    published: list[object] = []
    worker = WorkerContext(
        store=store,
        cells=cells,
        clock_ms=lambda: NOW_MS,
        publish=lambda _thread, event: published.append(event),
    )
    words = []
    for resume in (None, {"redo": True}, {"redo": True}):
        driver = Driver(
            thread=placed.thread,
            slot=1,
            journal=open_journal(),
            request=DriveRequest(resume=resume),
            config=load(store),
            worker=worker,
        )
        with closing(driver):
            driver.accept()
            words.append(driver.run())
    with closing(open_journal()) as journal:
        return words, published, journal.read()


@pytest.mark.slow
def test_a_flow_runs_over_any_journal(store: Store) -> None:
    """A flow over a journal in memory writes, flushes and spills what it does over a file, and
    touches no file of the thread.
    """
    placed = place(store, PLANNED, params={"plan": EVENTFUL})
    start = placed.path.read_bytes()
    memory = MemoryThread(
        bundle=placed.bundle.hash, thread=placed.thread, data=bytearray(start), flushed_bytes=0
    )
    # a busy machine makes no bundle slow
    limits = CellLimits(slow_ms=PATIENT_MS)
    with closing(start_cells(placed.bundle, "auto", limits=limits, begun=None)) as cells:
        in_memory = drive_over(memory.open, store, placed, cells)
        assert placed.path.read_bytes() == start
        assert list(store.blobs.iterdir()) == []
        in_a_file = drive_over(
            lambda: JournalFile.open(store, placed.bundle.hash, placed.thread), store, placed, cells
        )
    assert in_memory == in_a_file
    assert in_memory[0] == ["paused", "paused", "completed"]
    assert in_a_file[2] == placed.path.read_bytes()
    found = {one.name: one.read_bytes() for one in store.blobs.iterdir()}
    assert memory.blobs.kept == found
    assert len(found) >= 2


def test_whoever_lost_the_answer_asks_again_and_nobody_else_is_taken_for_him(
    begin: Callable[..., tuple[Placed, Driver]],
) -> None:
    """A resume with another note, or another limit, is not the one that the thread was taken up
    for.
    """
    _, driver = begin()
    driver._request = DriveRequest(resume={"note": "be careful"})
    assert driver.has_same_request({"note": "be careful"})
    assert not driver.has_same_request({})
