"""Rivals of a worker: another cluster in the same database, a row that no owner wrote, and a kill
that meets the death of the worker.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from testbed.bundles import thread_id
from testbed.cluster_scene import CALLS, ClusterScene, cluster_scene
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.store import Store
from uncaged_cluster.store import open_store
from uncaged_engine.shared_engine import shared_engine
from uncaged_engine.stores.copying import copy_store

HELD = 3

pytestmark = [pytest.mark.slow, pytest.mark.needs("postgres")]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterScene]:
    with cluster_scene(tmp_path_factory.mktemp("rivals")) as found:
        yield found


def test_two_clusters_of_a_database_share_nothing(scene: ClusterScene) -> None:
    """Threads with the same id run in both. When the worker of the first one dies, the worker of
    the second one, which looks for dead ones, takes nothing. Some ten seconds.
    """
    other = scene.server.address(scene.server.new_schema())
    with (
        closing(open_store(scene.at_socket(), create=False, is_visible=True)) as source,
        closing(open_store(other, create=True, is_visible=True)) as target,
    ):
        copy_store(source, target, replace=False, progress=lambda _kind, _count: None)
    thread = thread_id(7)
    scene.gate.close(held=HELD)
    with ExitStack() as stack:
        person = Store.open(scene.directory / "other-person")
        engine = stack.enter_context(
            shared_engine(other, person, is_visible=True, report=lambda _reason: None)
        )
        here = stack.enter_context(scene.worker("here", scene.at_socket()))
        stack.enter_context(scene.worker("there", other))
        scene.engine.run("calls", prompt="", thread=thread)
        engine.run("calls", prompt="", thread=thread)
        scene.gate.wait_for(2 * (HELD + 1))
        here.kill()
        here.wait()
        scene.gate.is_open.set()
        scene.wait_until(lambda: engine.thread(thread).end is not None, "there")
        assert scene.engine.thread(thread).summary.steps == HELD
        stack.enter_context(scene.worker("heir", scene.at_socket()))
        scene.wait_for_ends([thread])
        assert engine.verify(thread).ok
        assert scene.events("there") == ["driven", "left"]
    assert len(scene.gate.seen) == 2 * CALLS + 1  # the request that was open at the death


def test_a_kill_outlives_the_worker_that_was_to_carry_it_out(scene: ClusterScene) -> None:
    """The worker is frozen before it sees the request, and dies; the one that takes the thread
    over kills it, and performs nothing.
    """
    scene.gate.close(held=HELD)
    with scene.worker("deaf", scene.at_socket()) as deaf, ThreadPoolExecutor() as pool:
        [thread] = scene.start(1)
        scene.gate.wait_for(HELD + 1)
        deaf.send_signal(signal.SIGSTOP)
        killing = pool.submit(scene.engine.kill, thread)
        with scene.rows() as rows:
            scene.wait_until(
                lambda: rows.execute("SELECT 1 FROM requests").fetchone() is not None, "deaf"
            )
        deaf.kill()
        with scene.worker("obedient", scene.at_socket()):
            assert killing.result() == thread
    assert scene.engine.thread(thread).summary.status == "killed"
    assert scene.engine.verify(thread).ok
    assert len(scene.gate.seen) <= HELD + 2  # the open request may have been sent once more


def test_a_row_that_no_owner_wrote_stops_its_thread_alone(scene: ClusterScene) -> None:
    """A process with the rights of the store's owner writes a line behind the last one. The worker
    appends nothing behind it, performs no further effect of that thread, and ends the others.
    """
    scene.gate.close(held=HELD)
    with scene.worker("honest", scene.at_socket()) as honest:
        forged, other = scene.start(2)
        scene.gate.wait_for(2 * (HELD + 1))
        lines = scene.lines(forged)
        with scene.rows() as rows:
            rows.execute(
                "INSERT INTO thread_lines (log, position, line)"
                " SELECT number, lines, %s FROM threads WHERE name = %s",
                [b'{"end":"completed"}\n', forged],
            )
            scene.gate.is_open.set()
            scene.wait_for_ends([other])
            assert scene.lines(forged) == lines
            with pytest.raises(DamagedError, match=f"{forged}, line {lines}"):
                scene.engine.verify(forged)
            scene.wait_until(lambda: "warning" in scene.events("honest"), "honest")
            assert "lost" not in scene.events("honest") and honest.poll() is None
            assert f"/{forged}/{HELD + 1}" not in scene.gate.seen
            # for the check of the store at the end
            rows.execute(
                "DELETE FROM thread_lines WHERE position = %s AND line = %s",
                [lines, b'{"end":"completed"}\n'],
            )
