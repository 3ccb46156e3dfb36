"""The disk fails, or the process dies, at every call by which `add` and `run` write to the
store.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from testbed.bundles import COUNT, MARKED, granted, source
from testbed.foreground import environment
from testbed.steering import finish
from testbed.straced import FAULTS, Fault, calls_of, injection, points, strace
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import bundle_hash
from uncaged_engine.api import Engine

pytestmark = [pytest.mark.slow, pytest.mark.needs("strace")]

FIRST = source(
    "flow", "    yield {'null': {'value': 1}}\n    return {'success': True, 'message': 'one'}\n"
)
SECOND = source(
    "flow", "    yield {'null': {'value': 2}}\n    return {'success': True, 'message': 'two'}\n"
)
# the bundle, its readable copy, the registry, its index
ADD_CALLS = {"write": 4, "fsync": 6, "rename": 4}
# the directory of a new bundle, the order of starts, the journal
RUN_CALLS = {"fsync": 3, "write": 2, "rename": 1}
ADD_POINTS = points(**ADD_CALLS)
RUN_POINTS = [*points(**RUN_CALLS), "unlink 1"]
"""The last is an old report's, which goes if the worker was waited for."""


def act(
    engine: Engine, log: Path, words: Sequence[str], inject: str | None, patch: str | None = None
) -> str:
    """Do one thing in a traced process; returns what it acknowledged."""
    python = (
        ["-m", "testbed.patched", patch, "testbed.store_actions"]
        if patch
        else ["-m", "testbed.store_actions"]
    )
    command = [
        *strace(log, inject=inject, alone=True),
        sys.executable,
        *python,
        str(engine.store.root),
        *words,
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    if inject and "KILL" not in inject and done.returncode:
        assert "errors.StorageError" in done.stderr or "JournalBroken" in done.stderr, done.stderr
    return done.stdout


def calls_below(root: Path, log: Path) -> dict[str, int]:
    names = [call.name for call in calls_of(log) if str(root) in call.arguments]
    return {name: names.count(name) for name in dict.fromkeys(names)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.py"
    path.write_bytes(SECOND)
    return path


def check_the_registry(engine: Engine, acknowledged: str) -> None:
    """Check that the registry is the old or the new one: every name leads to a bundle that loads,
    and an acknowledged one is registered.
    """
    snapshot = engine.registry.read()
    assert snapshot.problems == ()
    assert set(snapshot.flows) == {"flow", "count"}, "a flow is lost"
    for flow in snapshot.flows.values():
        for version in (flow.head, *flow.history):
            assert engine.store.load_bundle(version.hash).hash == version.hash
    if acknowledged:
        assert acknowledged == f"done {snapshot.flows['flow'].hash}\n"
        assert engine.registry.granted(engine.bundle("flow"))


def test_every_call_is_among_the_points(engine: Engine, file: Path, tmp_path: Path) -> None:
    """The points below are all there are."""
    granted(engine.store, FIRST)
    act(engine, tmp_path / "add", ["add", "flow", str(file)], None)
    assert calls_below(engine.store.root, tmp_path / "add") == ADD_CALLS
    act(engine, tmp_path / "run", ["run", "flow"], None)
    found = calls_below(engine.store.root, tmp_path / "run")
    assert {name: count for name, count in found.items() if name != "unlink"} == RUN_CALLS


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", ADD_POINTS)
def test_one_fault_while_adding(
    engine: Engine, file: Path, tmp_path: Path, point: str, fault: Fault
) -> None:
    """The registry is the old one or the new one; the error is one for people; adding again
    succeeds.
    """
    granted(engine.store, COUNT)
    granted(engine.store, FIRST)
    log = tmp_path / "log"
    told = act(engine, log, ["add", "flow", str(file)], injection(point, fault))
    assert any(one.result in (None, -1) for one in calls_of(log)), "the fault did not happen"
    check_the_registry(engine, told)
    engine.add("flow", SECOND, accept=lambda _widened: True)
    check_the_registry(engine, f"done {bundle_hash(SECOND)}\n")
    assert [version.hash for version in engine.registry.read().flows["flow"].history] == [
        bundle_hash(FIRST)
    ]


def test_the_harness_sees_a_file_that_was_written_in_place(
    engine: Engine, file: Path, tmp_path: Path
) -> None:
    """Positive control: without temporary file and rename, a process killed while it writes leaves
    half a registry.
    """
    granted(engine.store, COUNT)
    granted(engine.store, FIRST)
    act(
        engine,
        tmp_path / "log",
        ["add", "flow", str(file)],
        injection("write 3", "KILL"),
        "in-place",
    )
    with pytest.raises((AssertionError, UncagedError)):
        check_the_registry(engine, "")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", RUN_POINTS)
def test_one_fault_while_starting(engine: Engine, tmp_path: Path, point: str, fault: Fault) -> None:
    """A thread that was acknowledged exists; one that exists, acknowledged or not, can be finished;
    none is half there.
    """
    granted(engine.store, MARKED)
    told = act(engine, tmp_path / "log", ["run", "marked"], injection(point, fault))
    threads = engine.threads()
    assert told in ("", *(f"done {one.thread_id}\n" for one in threads))
    assert len(threads) <= 1
    for thread in threads:
        if thread.status == "interrupted":
            engine.resume(thread.thread_id)
        assert finish(engine, thread.thread_id)["data"] == [1, 2, 3, 4, 5]
    again = engine.run("marked", prompt="")
    assert finish(engine, again)["message"] == "5 answers"
