"""Replays in real sandbox processes: a bundle does the same again for the same outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from testbed.bundles import PLANNED, script_of
from testbed.looping import Table
from testbed.strategies import plans
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.cells.cell import Cell
from uncaged_engine.cells.replay import Replay, start_body
from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_engine.sandbox.mechanism import choose

pytestmark = pytest.mark.slow
DEADLINE_S = 20.0


class Live:
    """A slot of a cell, spoken to as the loop speaks to a bundle."""

    def __init__(self, cell: Cell, start: bytes) -> None:
        self._cell = cell
        self._start = start
        self._seq = 0

    def start(self) -> BundleReply:
        return self._cell.ask("S", 1, 0, self._start, deadline_s=DEADLINE_S)

    def tell(self, line: bytes) -> BundleReply:
        self._seq += 1
        return self._cell.send_outcome(1, self._seq, line, deadline_s=DEADLINE_S)


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    cell = Cell.start(read_bundle(PLANNED, KNOWN), choose())
    yield cell
    cell.close()


@given(plan=plans)
def test_replay_equals_run(
    cell: Cell, tmp_path_factory: pytest.TempPathFactory, plan: list[Mapping[str, Any]]
) -> None:
    """Quickly and step by step, the replay of a journal leads to its end, and its effects have the
    recorded digest.
    """
    table = Table(script=script_of(read_bundle(PLANNED, KNOWN), params={"plan": plan}))
    start = json.loads(table.script.sealed[0])
    assert table.play_with(Live(cell, start_body(start, []))) == "completed"
    history = table.history()
    assert len(history.steps) == len(plan)
    replay = Replay(
        history, start, BlobDirectory(Path(tmp_path_factory.getbasetemp())), trusted=False
    )
    quick = replay.run(cell, 2, deadline_s=DEADLINE_S)
    slow = replay.run_stepwise(cell, 3, table.script.data, deadline_s=DEADLINE_S)
    assert quick == slow
    assert quick is not None
    assert history.end is not None
    assert json.loads(quick.body) == history.end["result"]
