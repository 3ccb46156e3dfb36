"""Temporary store whose threads real workers drive."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.journal import lines, lock
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.worker import client

from .cputime import Profile, ends_of_steps, family, take_sample

MAX_STEPS = 1_000_000
POLL_S = 0.005
SAMPLE_S = 0.002
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The time at which each step of a thread was finished, by the worker's clock; step 1 first."""

    finished_ms: tuple[int, ...]

    def per_step_us(self, after: int, until: int) -> float:
        """Return the mean microseconds per step, from step *after* to step *until*."""
        return (self.finished_ms[until - 1] - self.finished_ms[after - 1]) * 1000 / (until - after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """One store in its own directory."""

    directory: Path
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", Engine(Store.open(self.directory / "store")))

    def add(self, name: str, source: bytes) -> BundleHash:
        return self.engine.add(name, source, accept=lambda _: True).hash

    def start(self, flow: str, steps: int = 0) -> ThreadId:
        """Start a thread; the flow gets *steps* as its prompt."""
        return self.engine.run(
            flow,
            prompt=str(steps),
            options=RunOptions(max_steps=MAX_STEPS, environment={}, directory=self.directory),
        )

    def path(self, thread: ThreadId) -> Path:
        return self.engine.store.locate_thread(thread)[2]

    def wait(self, thread: ThreadId) -> Path:
        """Return the journal of a thread once no worker has it, without following, which would cost
        the worker time.
        """
        path = self.path(thread)
        end = time.monotonic() + PATIENCE_S
        while lock.is_live(path):
            if time.monotonic() > end:
                raise TimeoutError(f"thread {thread} did not end within {PATIENCE_S:.0f} s")
            time.sleep(POLL_S)
        return path

    def run(self, flow: str, steps: int) -> Path:
        """Run a thread to its end and return its journal."""
        return self.wait(self.start(flow, steps))

    def profile(
        self, flow: str, steps: int, *, followers: int = 0, beside: Sequence[int] = ()
    ) -> Profile:
        """Run a thread to its end and watch what the worker and its sandbox use up; the worker must
        live already.

        Args:
            followers: so many connections of this process are sent the thread's events meanwhile.
            beside: other processes to watch.
        """
        thread = self.start(flow, steps)
        bundle, _, path = self.engine.store.locate_thread(thread)
        for _ in range(followers):
            threading.Thread(target=self._follow, args=(bundle, thread), daemon=True).start()
        pid = self.worker_pid(bundle)
        if pid is None:
            raise RuntimeError(
                f"the worker of {flow} is gone before its thread {thread} was looked at"
            )
        pids = [*family(pid), *beside]
        samples = [take_sample(path, pids)]
        while lock.is_live(path):
            time.sleep(SAMPLE_S)
            samples.append(take_sample(path, pids))
        return Profile(samples=samples, ends=ends_of_steps(path))

    def _follow(self, bundle: BundleHash, thread: ThreadId) -> None:
        with client.following(self.engine.store, bundle, thread) as events:
            for _ in events or ():
                pass

    def journal(self, thread: ThreadId) -> JournalFile:
        store = self.engine.store
        bundle, thread, _ = store.locate_thread(thread)
        return JournalFile.open(store, bundle, thread)

    def close(self) -> None:
        """End the remaining workers."""
        for bundle in self.engine.store.find_bundles():
            self.end_worker(bundle)

    def worker_pid(self, bundle: BundleHash) -> int | None:
        """Return the process id of the live worker of a bundle."""
        answer = client.request(self.engine.store, bundle, {"op": "list"}, start=False)
        return None if answer is None else int(answer["pid"])

    def performing(self, bundle: BundleHash) -> int:
        """Return how many threads of the live worker are inside an effect."""
        answer = client.request(self.engine.store, bundle, {"op": "list"}, start=False)
        return 0 if answer is None else sum(one["doing"] is not None for one in answer["threads"])

    def end_worker(self, bundle: BundleHash) -> None:
        """End a worker at once, with all its threads."""
        pid = self.worker_pid(bundle)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)


def step_lines(path: Path) -> list[bytes]:
    """Return the sealed lines of a journal's finished steps."""
    with path.open("rb") as journal:
        return [line for line in journal if lines.shape_of(line)[0] == "step"]


def timeline(path: Path) -> Timeline:
    return Timeline(finished_ms=tuple(timestamp_of(line) for line in step_lines(path)))


def timestamp_of(line: bytes) -> int:
    head = line.rindex(b'"timestamp":') + len(b'"timestamp":')
    return int(line[head : line.index(b",", head)])
