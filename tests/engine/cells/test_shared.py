"""The worker has one sandbox process for all its threads, and a new one whenever that dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.cells import begin, unchecked
from uncaged_bundles.errors import BundleError
from uncaged_engine.cells.cell import Cell, CellDied, CellLimits
from uncaged_engine.cells.shared import Cells
from uncaged_engine.sandbox.mechanism import choose

SOURCE = "def run(input, options):\n    yield {'null': {}}\n"


@pytest.fixture
def cells() -> Iterator[Cells]:
    cells = Cells(unchecked(SOURCE), choose(), CellLimits())
    yield cells
    cells.close()


def from_another_thread(cells: Cells) -> Cell:
    """Return the cell that a driver gets whose thread ends right afterwards."""
    got: list[Cell] = []
    driver = threading.Thread(target=lambda: got.append(cells.shared()))
    driver.start()
    driver.join()
    while Path(f"/proc/self/task/{driver.native_id}").exists():
        pass  # the operating system's thread ends a moment after Python's
    return got[0]


def test_a_cell_outlives_the_thread_that_asked_for_it(cells: Cells) -> None:
    """A cell dies with the operating-system thread that started it, so no driver starts one."""
    cell = from_another_thread(cells)
    assert begin(cell).word == "effect"
    assert cells.shared() is cell


def test_a_dead_cell_is_replaced_once_for_all(cells: Cells) -> None:
    """Requests after the death was noticed get the same new cell."""
    first = cells.shared()
    os.kill(first._launched.child.pid, signal.SIGKILL)
    with pytest.raises(CellDied):
        while True:  # the process in the sandbox dies a moment after its keeper
            begin(first)
    second = cells.shared()
    assert second is not first
    assert from_another_thread(cells) is second


def test_a_cell_alone_is_nobody_elses(cells: Cells) -> None:
    """The shared one is not touched by it."""
    shared, alone = cells.shared(), cells.alone()
    assert alone is not shared
    alone.close()
    assert begin(shared).word == "effect"


def test_a_bundle_that_does_not_compile_is_an_error_every_time() -> None:
    """Each caller gets the error, and no process is left behind."""
    cells = Cells(unchecked("def run(:\n"), choose(), CellLimits())
    for _ in range(2):
        with pytest.raises(BundleError):
            cells.shared()
    cells.close()
