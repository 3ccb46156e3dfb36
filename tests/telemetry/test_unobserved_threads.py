"""Cost of telemetry for threads without an observer."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import COUNT, place
from testbed.fault_checks import drive
from testbed.foreground import worker
from testbed.straced import calls_of, strace
from uncaged_engine.api import Engine

pytestmark = pytest.mark.slow

STEPS = 50
LISTED = """
import sys
from pathlib import Path
from testbed.patched import patient_cell
patient_cell()
from uncaged_engine.worker.__main__ import main
status = main(sys.argv[2:])
Path(sys.argv[1]).write_text("\\n".join(sys.modules))
"""
"""A patient worker (`testbed.foreground`) that lists its modules when it ends."""


@pytest.mark.needs("strace")
def test_without_a_variable_nothing_is_imported_or_asked(engine: Engine, tmp_path: Path) -> None:
    """A worker whose callers have no variable of OpenTelemetry imports none of it; between the
    first and the last step it opens no file and no connection.
    """
    placed = place(engine.store, COUNT, params={"n": STEPS})
    log, modules = tmp_path / "log", tmp_path / "modules"
    traced = strace(log, calls=["openat", "newfstatat", "connect", "fdatasync"])
    python = ("-c", LISTED, str(modules))
    with worker(engine.store, placed.bundle.hash, before=traced, python=python) as process:
        drive(engine.store, placed)
        process.wait()  # one second after its last thread
    loaded = {name.partition(".")[0] for name in modules.read_text().splitlines()}
    assert "uncaged_engine" in loaded
    assert not loaded & {"opentelemetry", "uncaged_telemetry", "prometheus_client"}
    calls = calls_of(log)
    flushes = [number for number, call in enumerate(calls) if call.name == "fdatasync"]
    assert len(flushes) == STEPS + 1
    pid = calls[flushes[0]].pid
    between = [call.name for call in calls[flushes[1] : flushes[STEPS - 1]] if call.pid == pid]
    assert set(between) == {"fdatasync"}
