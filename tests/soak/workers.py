"""Processes of `uncaged-workflow work` for the soak test of a shared store, with the moments at
which one was killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parent.parent


@dataclass
class Workers:
    """The processes of the workers. patch: of `testbed.patched`, if they run without a safeguard.
    kills_ms: when one was killed, before and after. ended: sentences about those that ended by
    themselves.
    """

    address: str
    root: Path
    slots: int
    patch: str | None = None
    kills_ms: list[tuple[int, int]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, number: int) -> subprocess.Popen[bytes]:
        home = self.root / f"worker-{number}"
        home.mkdir(exist_ok=True)
        home.chmod(0o755)
        patched = () if self.patch is None else ("testbed.patched", self.patch)
        module = ("-m", *patched, "uncaged_cli")
        words = [*module, "work", "--store", self.address, "--slots", str(self.slots)]
        with (self.root / f"worker-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words],
                env={
                    **os.environ,
                    "UNCAGED_WORKFLOW_HOME": str(home),
                    "PYTHONPATH": str(TESTS) if patched else "",
                },
                cwd=home,
                stdout=log,
                stderr=log,
            )

    @contextmanager
    def at_work(self, count: int) -> Iterator[None]:
        self.running = [self.begin(number) for number in range(count)]
        try:
            yield
        finally:
            for process in self.running:
                process.kill()
                process.wait()

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL a worker, and start another one in its place."""
        number = chance.randrange(len(self.running))
        process = self.running[number]
        if process.poll() is None:
            begin_ms = _now_ms()
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.kills_ms.append((begin_ms, _now_ms()))
        else:
            self.ended.append(f"worker {number} ended by itself with {process.returncode}")
        self.running[number] = self.begin(number)

    def killed_between(self, begin_ms: int, end_ms: int) -> bool:
        return any(before <= end_ms and begin_ms <= after for before, after in self.kills_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
