"""Workers that lose the network or the database while they drive threads, or whose clock is wrong:
each effect is counted by the web server that gets it, and compared with the journals.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from testbed.cluster_scene import CALLS, PATIENCE_S, SILENT_S, WORKER, ClusterScene, cluster_scene
from testbed.stalling import stalling_proxy

AHEAD = (
    "-c",
    "import sys, time; now = time.time_ns; time.time_ns = lambda: now() + 3600 * 10**9\n"
    "from uncaged_cli.main import main\nsys.exit(main(sys.argv[1:]))",
)
"""The command line with a clock that is an hour ahead."""
NEXT = (
    "-c",
    "import sys, uncaged_cluster.workers as workers; workers.PROTOCOL = 'uncaged-workflow-next'\n"
    "from uncaged_cli.main import main\nsys.exit(main(sys.argv[1:]))",
)
"""The command line of an engine with another version of journals."""

pytestmark = [pytest.mark.slow, pytest.mark.needs("postgres")]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterScene]:
    with cluster_scene(tmp_path_factory.mktemp("deaths")) as found:
        yield found


def test_a_worker_behind_a_split_network_is_replaced_and_comes_back(scene: ClusterScene) -> None:
    """Nothing gets through in either direction, and no connection is closed. Then the network is
    whole again, with the bytes that were under way. Some twelve seconds.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    user, password = "postgres", scene.server.password
    assert password
    with stalling_proxy(scene.server.port) as proxy:
        address = f"postgresql://{user}@127.0.0.1:{proxy.port}/postgres?schema={scene.schema}"
        with scene.worker("apart", address) as apart:
            [thread] = scene.start(1)
            gate.wait_for(CALLS // 2 + 1)
            proxy.passes.clear()
            with scene.worker("near", scene.at_socket()):
                gate.wait_for(CALLS // 2 + 2)  # the open request, once more
                gate.is_open.set()
                scene.wait_for_ends([thread])
                scene.check_repeats([thread], "apart", "near")
                scene.wait_until(lambda: "lost" in scene.events("apart"), "apart")
            proxy.passes.set()
            # it is a worker again, and the only one
            again = scene.start(1)
            scene.wait_for_ends(again)
            assert apart.poll() is None
    assert scene.events("apart").count("driven") >= 2


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGQUIT])
def test_threads_outlive_a_restart_of_the_database(scene: ClusterScene, by: signal.Signals) -> None:
    """A fast one, which ends the sessions, and an immediate one, which is a crash: what was
    acknowledged is there, and the same processes go on as new workers.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    with (
        scene.worker("one", scene.at_socket()) as one,
        scene.worker("two", scene.at_socket()) as two,
    ):
        threads = scene.start(3)
        gate.wait_for(3 * (CALLS // 2 + 1))
        scene.server.restart(by)
        gate.is_open.set()
        scene.wait_for_ends(threads)
        assert one.poll() is None and two.poll() is None
        assert "lost" in scene.events("one") and "lost" in scene.events("two")
    scene.check_repeats(threads, "one", "two")


def test_a_frozen_worker_is_replaced_after_the_silence_of_the_setting(
    scene: ClusterScene,
) -> None:
    """A worker that waits for a minute of silence takes nothing over from one that is frozen for
    a shorter time, which goes on. One that waits for four seconds raises the fence and ends the
    thread; the frozen one then appends nothing, and begins anew. Some fifteen seconds.
    """
    gate = scene.gate
    gate.close(held=3)
    with scene.worker("frozen", scene.at_socket()) as frozen:
        [thread] = scene.start(1)
        gate.wait_for(4)
        with scene.worker("patient", scene.at_socket(), silent_s=60) as patient:
            scene.wait_until(lambda: scene.silence_s(patient) < 60, "patient")
            frozen.send_signal(signal.SIGSTOP)
            scene.wait_until(lambda: scene.silence_s(frozen) > SILENT_S, "patient")
            frozen.send_signal(signal.SIGCONT)
            gate.let_on(held=6)
            gate.wait_for(7)
            assert scene.events("patient") == []
        assert len(gate.seen) == 7
        frozen.send_signal(signal.SIGSTOP)
        before = scene.lines(thread)
        with scene.worker("strict", scene.at_socket()):
            gate.wait_for(8)  # the open request, once more
            gate.is_open.set()
            scene.wait_for_ends([thread])
            assert scene.events("strict") == ["driven", "left"]
        after = scene.lines(thread)
        assert after > before
        frozen.send_signal(signal.SIGCONT)
        scene.wait_until(lambda: "lost" in scene.events("frozen"), "frozen")
        again = scene.start(1)
        scene.wait_for_ends(again)
        assert frozen.poll() is None
        assert scene.lines(thread) == after
        scene.check_repeats([thread, *again], "frozen", "strict")


def test_workers_of_two_versions_drive_their_own_threads(scene: ClusterScene) -> None:
    """While a cluster is upgraded, one worker of the old version dies and the next one drains. The
    worker of the new version gives the threads of both back, and drives those of its own version
    alone; a last worker of the old one, run until it is idle, ends the others. Some fifteen
    seconds.
    """
    gate = scene.gate
    gate.close(held=3)
    with ExitStack() as stack:
        first = stack.enter_context(scene.worker("first", scene.at_socket()))
        old = scene.start(2)
        gate.wait_for(2 * 4)
        stack.enter_context(scene.worker("new", scene.at_socket(), NEXT))
        new = scene.start_by(NEXT)
        gate.wait_for(3 * 4)
        first.kill()
        second = stack.enter_context(scene.worker("second", scene.at_socket()))
        gate.wait_for(5 * 4 - 2 * 3)  # the open requests, once more
        second.terminate()
        scene.wait_until(lambda: "stopping" in scene.events("second"), "second")
        gate.is_open.set()
        scene.wait_for_ends([new])
        assert second.wait(PATIENCE_S) == 0
        assert scene.events("new") == ["driven", "left"]
        assert [scene.engine.thread(one).summary.steps for one in old] == [4, 4]
        last = stack.enter_context(scene.worker("last", scene.at_socket(), WORKER, "--until-idle"))
        scene.wait_for_ends(old)
        assert last.wait(PATIENCE_S) == 0
        assert scene.events("new") == ["driven", "left"]
    scene.check_repeats([*old, new], "first", "second", "new", "last")


def test_clocks_an_hour_apart_hold_nothing_up(scene: ClusterScene) -> None:
    """A worker with a clock an hour ahead is killed in an effect; one with the right clock takes
    the thread over, and neither takes the other for dead.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    with (
        scene.worker("ahead", scene.at_socket(), AHEAD) as ahead,
        ExitStack() as stack,
    ):
        [thread] = scene.start(1)
        gate.wait_for(CALLS // 2 + 1)
        stack.enter_context(scene.worker("right", scene.at_socket()))
        later = scene.start(2)  # they fill both workers
        gate.wait_for(3 * (CALLS // 2 + 1))
        ahead.kill()
        gate.is_open.set()
        scene.wait_for_ends([thread, *later])
    stamps = [record.get("timestamp", 0) for record in scene.engine.thread(thread).records]
    assert stamps != sorted(stamps)
    scene.check_repeats([thread, *later], "ahead", "right")
