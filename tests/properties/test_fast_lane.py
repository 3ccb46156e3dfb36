"""The fast lane writes, flushes, performs, asks and publishes what the loop does, in the same order
and at the same points.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testbed.bundles import PLANNED, Placed, place
from testbed.journals import NOW_MS
from testbed.strategies import effects as usual_effects
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.storage.store import Store
from uncaged_effects.null import NullHandler
from uncaged_engine.cells.cell import CellLimits
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.cells.session import BundleSession
from uncaged_engine.cells.shared import Cells, start_cells
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.settings.loading import load
from uncaged_engine.steps.driver import Driver
from uncaged_engine.steps.fast_lane import FastLane
from uncaged_engine.steps.request import DriveRequest, WorkerContext

pytestmark = pytest.mark.slow

LARGE = lines.SPILL_BYTES + 1000
EPISODES = 4
PATIENT_MS = 20_000
FLOW = PLANNED.replace(b"'policy': {'null': {}}", b"'policy': {'null': {}, 'all': {}}")
ONE = {"null": {"value": 1}}

Event = tuple[object, ...]
Action = Callable[[Driver], None]
ACTIONS: Mapping[str, Action] = {"pause": Driver.pause, "kill": Driver.kill}

effects = st.one_of(
    st.just(ONE),  # most of a history is ordinary
    st.just(ONE),
    usual_effects,
    st.sampled_from(
        [
            {"null": {"value": "v", "times": LARGE}},
            {"null": {"value": "v" * LARGE}},
            {"null": {"value": "v" * LARGE, "fail": "no"}},
            {"null": {"value": 1, "label": "for people"}},
            {"null": {"fail": "no", "retry": {"times": 2, "pause_s": 0}}},
            {"null": {"value": 1, "retry": {"often": 1}}},
            {"null": {"value": 1, "mark": True}},
            {"null": {"sleep_s": 0.001}},
            {"null": {"lack": "a tool"}},
            {"null": {"wait": True}},
            {"null": [1]},
            {"all": {"effects": [ONE, {"null": {"fail": "no"}}, {"now": {}}], "limit": 1}},
            {"now": {}},
            {"now": {"value": "v" * (lines.MARK_BYTES + 1)}},
            {"teleport": {}},
            {"output": {"role": "r", "content": "c", "meta": {}, "by": "me"}},
            {"null": {}, "now": {}},
            {},
            [],
            "raise",
        ]
    ),
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "maxRounds": st.integers(0, 3),
        "maxSteps": st.integers(1, 8),
        "maxJournalBytes": st.integers(1000, 3000),
        "maxTokens": st.just(1000),
    },
)
moments = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(sorted(ACTIONS))), max_size=2)


@dataclass(slots=True)
class Recorder:
    """Record of a driver's actions, in order, and of what happens to it meanwhile: an action is due
    when so many events are recorded.
    """

    due: Mapping[int, str]
    events: list[Event] = field(default_factory=list)
    driver: Driver | None = None

    def note(self, *event: object) -> None:
        self.events.append(event)

    def note_and_act(self, *event: object) -> None:
        """At a point where another thread of execution could come in between."""
        self.note(*event)
        word = self.due.get(len(self.events))
        if word is not None and self.driver is not None:
            ACTIONS[word](self.driver)


@pytest.fixture(scope="module")
def memory() -> Iterator[Store]:
    directory = Path("/dev/shm")
    with TemporaryDirectory(dir=directory if os.access(directory, os.W_OK) else None) as name:
        yield Store.open(Path(name))


@pytest.fixture(scope="module")
def cells(memory: Store) -> Iterator[Cells]:
    bundle = place(memory, FLOW, number=99).bundle
    # a busy machine makes no bundle slow
    found = start_cells(bundle, "auto", limits=CellLimits(slow_ms=PATIENT_MS), begun=None)
    yield found
    found.close()


def record(patch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    """Note what reaches the journal, the bundle and the handlers."""
    append, flush, ask, perform = (
        JournalFile.append,
        JournalFile.flush,
        BundleSession.ask,
        NullHandler.perform,
    )

    def appending(self: JournalFile, body: bytes, *, flush: bool = False) -> bytes:
        recorder.note("append", body, flush)
        return append(self, body, flush=flush)

    def flushing(self: JournalFile) -> None:
        recorder.note("flush")
        flush(self)

    def asking(self: BundleSession, seq: int, line: bytes) -> BundleReply:
        recorder.note_and_act("ask", seq, line)
        said = ask(self, seq, line)
        recorder.note_and_act("said", said.word, said.body)
        return said

    def performing(self: NullHandler, body: object, context: EffectContext) -> Outcome:
        facts = (
            context.seq,
            context.kind,
            context.part,
            context.attempt,
            context.key,
            context.intended_ms,
            context.note,
            context.answer,
        )
        recorder.note_and_act(
            "perform", body, *facts, dict(context.done), len(context.steps()), dict(context.left())
        )
        outcome = perform(self, body, context)
        recorder.note_and_act("performed", outcome)
        return outcome

    patch.setattr(JournalFile, "append", appending)
    patch.setattr(JournalFile, "flush", flushing)
    patch.setattr(BundleSession, "ask", asking)
    patch.setattr(NullHandler, "perform", performing)


def drive(
    store: Store,
    cells: Cells,
    placed: Placed,
    recorder: Recorder,
    resume: Mapping[str, object] | None,
) -> str | None:
    """Drive the thread once; None if it cannot be taken up as it is."""

    def clock_ms() -> int:
        return NOW_MS + placed.path.stat().st_size  # moves, and is the same where the journal is

    def publish(_thread: object, event: Mapping[str, object]) -> None:
        recorder.note("publish", dict(event))

    journal = JournalFile.open(store, placed.bundle.hash, placed.thread)
    worker = WorkerContext(store=store, cells=cells, clock_ms=clock_ms, publish=publish)
    driver = Driver(
        thread=placed.thread,
        slot=1,
        journal=journal,
        request=DriveRequest(resume=resume),
        config=load(store),
        worker=worker,
    )
    recorder.driver = driver
    with closing(driver):
        try:
            driver.accept()
        except RefusedError:
            return None
        return driver.run()


def live(
    store: Store,
    cells: Cells,
    plan: list[object],
    bounds: Mapping[str, int],
    due: Mapping[int, str],
    *,
    fast: bool,
) -> tuple[list[Event], bytes]:
    """Run a thread from its start until it cannot go on; return what happened and its journal."""
    placed = place(store, FLOW, params={"plan": plan}, limits=bounds)
    recorder = Recorder(due)
    try:
        with pytest.MonkeyPatch.context() as patch:
            record(patch, recorder)
            if not fast:
                patch.setattr(FastLane, "_permitted", lambda _self, _raw: None)
            word = drive(store, cells, placed, recorder, None)
            for _ in range(EPISODES):
                recorder.note("left", word)
                if word not in ("paused", "killed", "limit", "unknown"):
                    break
                word = drive(
                    store,
                    cells,
                    placed,
                    recorder,
                    {"redo": True, "maxRounds": 10, "maxSteps": 100, "maxJournalBytes": 1 << 30},
                )
        return recorder.events, placed.path.read_bytes()
    finally:
        placed.path.unlink()
        (store.work / f"{placed.thread}.null").unlink(missing_ok=True)


@example(plan=[ONE] * 9, bounds={"maxJournalBytes": 2000}, due=[])
@example(plan=[ONE] * 9, bounds={"maxSteps": 4}, due=[])
@example(plan=[ONE, {"now": {}}, ONE, {"teleport": {}}, ONE], bounds={}, due=[])
@example(plan=[ONE, {"output": {"role": "r", "content": "", "meta": {}}}, ONE], bounds={}, due=[])
@example(plan=[ONE] * 5, bounds={}, due=[(8, "pause"), (20, "kill")])
@example(plan=[ONE, {"null": {"value": "v", "times": LARGE}}, ONE], bounds={}, due=[])
@example(plan=[ONE, {"null": {"value": "v" * LARGE}}, ONE], bounds={}, due=[])
@given(plan=st.lists(effects, max_size=10), bounds=limits, due=moments)
def test_the_fast_lane_equals_the_loop(
    memory: Store,
    cells: Cells,
    plan: list[object],
    bounds: Mapping[str, int],
    due: list[tuple[int, str]],
) -> None:
    """Any history has the same commands and the same bytes by either way: limits, refusals,
    retries, large values, pauses and kills.
    """
    fast = live(memory, cells, plan, bounds, dict(due), fast=True)
    slow = live(memory, cells, plan, bounds, dict(due), fast=False)
    assert fast == slow
