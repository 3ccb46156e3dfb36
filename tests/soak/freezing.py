"""Freezes and a split of the network at the real settings, for the soak test of a shared store: who
drives a thread afterwards, and what was done twice.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.cluster_scene import CALLS, ClusterScene, cluster_scene
from testbed.stalling import stalling_proxy
from uncaged_bundles.ids import ThreadId

SHORT_S = 8.0
LONG_S = 90.0
SPLIT_S = 60.0
SILENT_S = 60.0
"""The default of `limits.workerSeconds`."""
HELD = 3
"""The number of the request in which each thread is when its worker is cut off."""


@dataclass
class Findings:
    """Promises that were compared with a run. violations: those that were broken."""

    say: Callable[[str], None]
    violations: list[str] = field(default_factory=list)

    def check(self, is_kept: bool, promise: str) -> None:
        self.say(f"{'ok' if is_kept else 'VIOLATION'}: {promise}")
        if not is_kept:
            self.violations.append(promise)


def freezes(say: Callable[[str], None]) -> list[str]:
    """Freeze a worker for 8 s and another one for 90 s; return the violations."""
    found = Findings(say)
    with _scene() as scene:
        _freeze_shortly(scene, found)
        _freeze_for_long(scene, found)
    return found.violations


def split(say: Callable[[str], None]) -> list[str]:
    """Cut a worker off from the database for a minute; return the violations."""
    found = Findings(say)
    with _scene() as scene, stalling_proxy(scene.server.port) as proxy:
        address = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?schema={scene.schema}"
        with scene.worker("apart", address, silent_s=None) as apart:
            thread = _held_thread(scene)
            with _bystander(scene):
                proxy.passes.clear()
                begin_s = time.monotonic()
                _wait_for_takeover(scene, found, begin_s)
                scene.gate.is_open.set()
                scene.wait_for_ends([thread])
                lines = scene.lines(thread)
                _sleep_until(begin_s + SPLIT_S)
            proxy.passes.set()
            _check_return(scene, found, "apart", apart, thread, lines=lines)
    return found.violations


def _freeze_shortly(scene: ClusterScene, found: Findings) -> None:
    with scene.worker("napping", scene.at_socket(), silent_s=None) as napping:
        thread = _held_thread(scene)
        with _bystander(scene):
            napping.send_signal(signal.SIGSTOP)
            time.sleep(SHORT_S)
            napping.send_signal(signal.SIGCONT)
            scene.gate.is_open.set()
            scene.wait_for_ends([thread])
            driven = scene.events("bystander").count("driven")
    found.check(driven == 0, f"no worker takes over from one that is frozen for {SHORT_S:.0f} s")
    found.check(len(scene.gate.seen) == CALLS, f"{CALLS} requests: each effect is performed once")


def _freeze_for_long(scene: ClusterScene, found: Findings) -> None:
    with scene.worker("frozen", scene.at_socket(), silent_s=None) as frozen:
        thread = _held_thread(scene)
        with _bystander(scene):
            begin_s = time.monotonic()
            frozen.send_signal(signal.SIGSTOP)
            _wait_for_takeover(scene, found, begin_s)
            scene.gate.is_open.set()
            scene.wait_for_ends([thread])
            lines = scene.lines(thread)
            _sleep_until(begin_s + LONG_S)
        frozen.send_signal(signal.SIGCONT)
        _check_return(scene, found, "frozen", frozen, thread, lines=lines)


@contextmanager
def _scene() -> Iterator[ClusterScene]:
    with (
        tempfile.TemporaryDirectory(prefix="soak-", dir="/tmp") as directory,
        cluster_scene(Path(directory)) as scene,
    ):
        yield scene


def _held_thread(scene: ClusterScene) -> ThreadId:
    """Start a thread, and wait until it is in the request that is held."""
    scene.gate.close(held=HELD)
    [thread] = scene.start(1)
    scene.gate.wait_for(HELD + 1)
    return thread


@contextmanager
def _bystander(scene: ClusterScene) -> Iterator[None]:
    """Run another worker, from its announcement on."""
    with scene.worker("bystander", scene.at_socket(), silent_s=None) as process:
        scene.wait_until(lambda: scene.silence_s(process) < SILENT_S, "bystander")
        yield


def _wait_for_takeover(scene: ClusterScene, found: Findings, begin_s: float) -> None:
    """Wait until the request that was open is sent once more, by another worker."""
    scene.gate.wait_for(HELD + 2)
    took_s = time.monotonic() - begin_s
    found.check(
        SILENT_S - 2 <= took_s <= LONG_S,
        f"another worker takes the thread over, after {took_s:.0f} s",
    )


def _check_return(
    scene: ClusterScene,
    found: Findings,
    name: str,
    process: subprocess.Popen[str],
    thread: ThreadId,
    *,
    lines: int,
) -> None:
    """Judge a worker that was cut off: it is a new worker now, and the only one."""
    scene.wait_until(lambda: "lost" in scene.events(name), name)
    again = scene.start(1)
    scene.wait_for_ends(again)
    found.check(process.poll() is None, "the worker that was cut off goes on as a new one")
    found.check(scene.lines(thread) == lines, f"and appends nothing to the {lines} lines")
    found.check(len(scene.gate.seen) == 2 * CALLS + 1, "the open request alone was sent once more")


def _sleep_until(moment_s: float) -> None:
    time.sleep(max(0.0, moment_s - time.monotonic()))
