"""An effect meets a broken or full disk: its thread pauses and says where, the worker goes on,
`resume` continues.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import PLANNED, place, source
from testbed.fault_checks import drive
from testbed.foreground import worker
from testbed.steering import finish, marks
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine
from uncaged_engine.worker import client

pytestmark = pytest.mark.slow

WRITER = source(
    "writer",
    """
    answer = yield {"script": {"language": "bash", "body": "echo once >> " + input["prompt"] + "/out"}}
    return {"success": answer["success"], "message": answer["stderr"]}
""",
    policy={"script": {"write": ["param:directory"]}},
    parameters={"type": "object", "properties": {"directory": {"type": "string"}}},
)
"""Flow of one script that writes, so that it is not repeated without a question."""


def reason(engine: Engine, thread: ThreadId) -> str:
    summary = engine.thread(thread).summary
    assert summary.status == "paused", summary
    return summary.message


def test_an_os_error_of_a_handler_is_a_void_and_no_bug(engine: Engine) -> None:
    """The thread pauses with the path and the reason; the same worker takes other threads; `resume`
    continues.
    """
    placed = place(engine.store, PLANNED, params={"plan": [{"null": {"value": 1, "mark": True}}]})
    other = place(engine.store, PLANNED, number=1, params={"plan": [{"null": {"value": 2}}]})
    in_the_way = engine.store.work / f"{placed.thread}.null"
    in_the_way.mkdir()
    with worker(engine.store, placed.bundle.hash) as process:
        drive(engine.store, placed)
        assert f"{in_the_way}: Is a directory" in reason(engine, placed.thread)
        drive(engine.store, other)
        assert engine.thread(other.thread).summary.status == "completed"
        in_the_way.rmdir()
        engine.resume(placed.thread)
        assert finish(engine, placed.thread)["data"] == [1]
        assert process.poll() is None
    assert marks(engine, placed.thread) == [1]
    assert list(engine.store.run.glob("report-*")) == []


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("step", ["mkdir", "write"])
def test_one_fault_in_a_scripts_scratch_directory_is_no_bug(
    engine: Engine, tmp_path: Path, step: str, fault: str
) -> None:
    """A script that could write was not started: its thread is paused, never `unknown`, and runs
    the script once on `resume`.
    """
    out = tmp_path / "out"
    out.mkdir()
    placed = place(engine.store, WRITER, prompt=str(out), params={"directory": str(out)})
    python = ("-m", "testbed.patched", f"scratch-{step}-{fault}", "uncaged_engine.worker")
    with worker(engine.store, placed.bundle.hash, python=python, stays=True):
        drive(engine.store, placed)
        assert "/tmp/uncaged-script-" in reason(engine, placed.thread)
        answer = client.request(engine.store, placed.bundle.hash, {"op": "list"}, start=False)
        assert answer is not None
        assert answer["threads"] == []
    assert not (out / "out").exists()
    assert list(engine.store.run.glob("report-*")) == []
    engine.resume(placed.thread)
    assert finish(engine, placed.thread)["success"]
    assert (out / "out").read_text() == "once\n"
