"""Early start of a worker's first sandbox: the mechanism is assumed to work, and is checked before
the bundle is sent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testbed.cells import begin, unchecked
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.cells.cell import Cell, CellLimits
from uncaged_engine.cells.shared import start_cells
from uncaged_engine.sandbox.mechanism import Mechanism, assume, choose

pytestmark = pytest.mark.needs("bubblewrap")  # nothing is assumed of Landlock

YIELDS = "def run(input, options):\n    yield {'null': 1}\n"


def test_what_is_assumed_is_what_would_be_tried_first() -> None:
    """On a machine where bubblewrap works, the assumed mechanism is the probed one; Landlock is
    never assumed.
    """
    assert assume("auto") == assume("bubblewrap") == choose("bubblewrap")
    assert assume("landlock") is None


@pytest.mark.slow
def test_a_cell_that_was_begun_is_the_shared_one() -> None:
    """The cell gets the bundle that it was started for, and no second process is started."""
    mechanism = choose()
    cell = Cell.spawn(mechanism, limits=CellLimits())
    cells = start_cells(unchecked(YIELDS), "auto", limits=CellLimits(), begun=(cell, mechanism))
    try:
        assert cells.shared() is cell
        assert begin(cell).word == "effect"
    finally:
        cells.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "#!/bin/sh\ncat >/dev/null\nexit 1\n",
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec env PYTHONHASHSEED=0 "$@"\n',
    ],
    ids=["does not start", "does not hold"],
)
def test_a_sandbox_that_was_assumed_in_vain_is_replaced(program: str, tmp_path: Path) -> None:
    """The bundle runs in one that was tried, never in the one that was not."""
    fake = tmp_path / "bwrap"
    fake.write_text(program)
    fake.chmod(0o755)
    assumed = Mechanism(
        name="bubblewrap", machine=os.uname().machine, program=fake, disable_userns=True
    )
    try:
        cell = Cell.spawn(assumed, limits=CellLimits())
    except SandboxUnavailable:  # it was gone before its first bytes were written
        cell = None
    cells = start_cells(
        unchecked(YIELDS),
        "auto",
        limits=CellLimits(),
        begun=None if cell is None else (cell, assumed),
    )
    try:
        assert cells.shared() is not cell
        assert cell is None or not cell.alive
        assert begin(cells.shared()).word == "effect"
    finally:
        cells.close()


@pytest.mark.slow
def test_a_trusted_bundle_does_not_get_the_cell_that_was_begun() -> None:
    """A trusted bundle has no sandbox, and the process that was started in vain is gone."""
    mechanism = choose()
    cell = Cell.spawn(mechanism, limits=CellLimits())
    cells = start_cells(
        unchecked(YIELDS, trusted=True), "auto", limits=CellLimits(), begun=(cell, mechanism)
    )
    try:
        assert cells.shared().mechanism == "none"
        assert not cell.alive
    finally:
        cells.close()
