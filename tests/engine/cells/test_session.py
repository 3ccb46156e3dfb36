"""A flow thread keeps its place in a sandbox process, and finds it again in a new one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testbed.bundles import thread_id
from testbed.cells import unchecked
from testbed.journals import NOW_MS, start_fields
from uncaged_bundles.errors import BundleError, ReplayError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.cells.cell import Cell, CellLimits
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.cells.session import BundleSession
from uncaged_engine.cells.shared import Cells
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile, create
from uncaged_engine.journal.infolog import InfoLog
from uncaged_engine.sandbox.mechanism import choose

SOURCE = """
import textwrap

def run(input, options):
    word = input["params"].get("word")
    heard = 0
    while True:
        if word == "pollute":
            textwrap.seen = 1
        if word == "loop" and heard == 2:
            while True:
                pass
        if word == "slow" and heard == 1:
            heard += sum(range(4_000_000)) * 0
        heard += 1
        yield {"null": {"value": heard + (getattr(textwrap, "seen", 0) if word == "look" else 0)}}
"""
PATIENT_S = 20.0
HASTY_S = 0.3


class Flow:
    """Thread of the bundle, as its driver sees it."""

    def __init__(
        self, cells: Cells, directory: Path, number: int, word: str | None, deadline_s: float
    ) -> None:
        self.thread: ThreadId = thread_id(number)
        bundle = cells.bundle.hash
        store = Store.open(directory)
        path = store.data_path(bundle, self.thread)
        start = start_fields(bundle, self.thread, params={"word": word})
        create(path, lines.start(start, NOW_MS), bundle, self.thread)
        self.journal = JournalFile.open(store, bundle, self.thread)
        self.session = BundleSession(
            cells=cells,
            slot=number,
            journal=self.journal,
            thread=self.thread,
            start=start,
            deadline_s=deadline_s,
            info=InfoLog(path.with_suffix(".info"), lambda: NOW_MS),
        )
        self.done = 0

    def begin(self) -> BundleReply:
        return self.session.begin(self.journal.reread())

    def step(self) -> BundleReply:
        """Answer the effect that is due, and hear the next one."""
        self.done += 1
        self.journal.append(lines.intent(self.done, b'{"null":{"value":%d}}' % self.done, NOW_MS))
        line = self.journal.append(lines.step(self.done, {"outcome": None}, NOW_MS))
        return self.session.ask(self.done, line)


@pytest.fixture
def slow_ms() -> int:
    return CellLimits().slow_ms


@pytest.fixture
def cells(slow_ms: int) -> Iterator[Cells]:
    cells = Cells(unchecked(SOURCE), choose(), CellLimits(slow_ms=slow_ms))
    yield cells
    cells.close()


@pytest.fixture
def flow(cells: Cells, tmp_path: Path) -> Iterator[Callable[..., Flow]]:
    flows: list[Flow] = []

    def make(number: int = 1, word: str | None = None, deadline_s: float = PATIENT_S) -> Flow:
        flows.append(Flow(cells, tmp_path, number, word, deadline_s))
        return flows[-1]

    yield make
    for one in flows:
        one.session.close()
        one.journal.close()


def effect(value: int) -> BundleReply:
    return BundleReply("effect", b'{"null":{"value":%d}}' % value)


def end_sandbox(cell: Cell) -> None:
    """SIGKILL the process behind a cell, and see it dead."""
    pid = cell._launched.child.pid
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_threads_of_a_bundle_share_one_process(cells: Cells, flow: Callable[..., Flow]) -> None:
    """Each goes its own way in it."""
    first, second = flow(1), flow(2)
    assert (first.begin(), second.begin()) == (effect(1), effect(1))
    assert [first.step(), first.step(), second.step()] == [effect(2), effect(3), effect(2)]
    assert cells.shared() is cells.shared()


def test_a_killed_sandbox_is_replaced_and_nobody_notices(
    cells: Cells, flow: Callable[..., Flow]
) -> None:
    """Every thread is replayed and goes on where it was: the one that met the dead process alone,
    the others together.
    """
    first, second, third = flow(1), flow(2), flow(3)
    for one in (first, second, third):
        one.begin()
        one.step()
    shared = cells.shared()
    end_sandbox(shared)
    assert [one.step() for one in (first, second, third)] == [effect(3)] * 3
    assert first.journal.flushed_bytes == first.journal.size_bytes, (
        "what was performed is on disk before anything is rebuilt"
    )
    assert cells.shared() is not shared
    assert [one.step() for one in (third, second, first)] == [effect(4)] * 3


@pytest.mark.slow
def test_a_sandbox_that_dies_again_and_again_between_answers_is_replaced_each_time(
    flow: Callable[..., Flow],
) -> None:
    """A thread that makes progress is no culprit, however often something ends its sandbox."""
    one = flow()
    one.begin()
    for value in range(2, 6):
        assert one.session._cell is not None
        end_sandbox(one.session._cell)
        assert one.step() == effect(value)


@pytest.mark.slow
def test_an_endless_loop_is_tried_once_more_alone_and_then_fails(flow: Callable[..., Flow]) -> None:
    """The error says at which step and how it was tried; what was performed is flushed; the
    neighbour goes on.
    """
    culprit, neighbour = flow(1, "loop"), flow(2)
    culprit.begin()
    neighbour.begin()
    assert culprit.step() == effect(2)
    culprit.session._deadline_s = HASTY_S  # only now: a busy machine takes its time, too
    with pytest.raises(
        BundleError, match=r"computed for more than .* before step 3, also when it was tried alone"
    ):
        culprit.step()
    assert culprit.journal.flushed_bytes == culprit.journal.size_bytes
    assert neighbour.step() == effect(2)


@pytest.mark.slow
def test_resuming_into_an_endless_loop_fails_too(flow: Callable[..., Flow]) -> None:
    """A replay that leads into the loop is tried alone as well, and ends the same way."""
    culprit = flow(1, "loop", HASTY_S)
    for seq in (1, 2):
        culprit.journal.append(lines.intent(seq, b'{"null":{"value":%d}}' % seq, NOW_MS))
        culprit.journal.append(lines.step(seq, {"outcome": None}, NOW_MS))
    with pytest.raises(BundleError, match="tried alone"):
        culprit.begin()


@pytest.mark.parametrize("steps", [0, 2])
def test_a_difference_counts_only_if_it_shows_alone(steps: int, flow: Callable[..., Flow]) -> None:
    """Another thread changed the standard library of the shared process: the thread goes on alone,
    and its effects are as recorded.
    """
    polluter, looker = flow(1, "pollute"), flow(2, "look")
    polluter.begin()
    for _ in range(steps):
        looker.done += 1
        looker.journal.append(
            lines.intent(looker.done, b'{"null":{"value":%d}}' % looker.done, NOW_MS)
        )
        looker.journal.append(lines.step(looker.done, {"outcome": None}, NOW_MS))
    looker.journal.append(lines.intent(steps + 1, b'{"null":{"value":%d}}' % (steps + 1), NOW_MS))
    assert looker.begin() == effect(steps + 1)
    assert polluter.step() == effect(2)


def test_a_difference_that_shows_alone_is_an_error_with_both_sides(
    flow: Callable[..., Flow],
) -> None:
    """The error shows the recorded effect and the one that this code yields instead."""
    other = flow()
    other.journal.append(lines.intent(1, b'{"null":{"value":7}}', NOW_MS))
    other.journal.append(lines.step(1, {"outcome": None}, NOW_MS))
    with pytest.raises(
        ReplayError,
        match=r'step 1: the journal holds .*"value":7.* the bundle now yields .*"value":1',
    ):
        other.begin()


@pytest.mark.parametrize(("slow_ms", "is_flushed"), [(1, True), (60_000, False)])
def test_an_outcome_is_flushed_while_the_bundle_computes(
    flow: Callable[..., Flow], is_flushed: bool
) -> None:
    """A bundle that does not answer within a few milliseconds keeps no performed effect off the
    disk; a quick one costs no flush. Which of them it is depends on the limit alone here, not on
    how busy the machine is.
    """
    one = flow(1, "slow")
    one.begin()
    one.step()
    assert (one.journal.flushed_bytes == one.journal.size_bytes) is is_flushed


def test_leaving_forgets_the_generator_and_keeps_the_process(
    cells: Cells, flow: Callable[..., Flow]
) -> None:
    """The next thread finds the same process."""
    one = flow()
    one.begin()
    shared = cells.shared()
    one.session.close()
    one.session.close()
    assert cells.shared() is shared
    assert flow(2).begin() == effect(1)
