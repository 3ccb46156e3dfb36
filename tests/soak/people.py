"""Other clients of the soak test of a shared store: they kill, pause, fork, remove and copy threads
while workers drive them and die.
"""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_cluster.store import open_store
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.cutting import Cut

from .crowd import Crowd

PAUSE_S = (0.1, 0.8)


class Person:
    """A client with a directory of its own. done, refused: how often, by verb."""

    def __init__(self, crowd: Crowd, address: str, home: Path, chance: random.Random) -> None:
        self._crowd = crowd
        self._address = address
        self._home = home
        self._chance = chance
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._verbs: Mapping[str, Callable[[SharedEngine], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "fork": self._fork,
            "remove": self._remove,
            "archive": self._archive,
            "prune": self._prune,
            "copy": self._copy,
            "twins": self._twins,
        }

    def live(self, ending: threading.Event) -> None:
        """Do one thing after the other until the event is set."""
        with shared_engine(
            self._address, Store.open(self._home), is_visible=True, report=lambda _sentence: None
        ) as engine:
            while not ending.wait(self._chance.uniform(*PAUSE_S)):
                if not self._crowd.live:
                    continue
                verb = self._chance.choice([*self._verbs])
                try:
                    self._verbs[verb](engine)
                    self.done[verb] += 1
                except UncagedError as exc:
                    self.refused[f"{verb}: {type(exc).__name__}"] += 1
                    if self.refused[f"{verb}: {type(exc).__name__}"] == 1:
                        print(f"refused: {verb}: {exc}", flush=True)  # noqa: T201 - the harness's output
                except Exception:
                    self._crowd.report("people", f"{verb}: {traceback.format_exc()}")

    def _kill(self, engine: SharedEngine) -> None:
        thread = self._any_live()
        self._crowd.killed.add(thread)
        engine.kill(thread)

    def _pause(self, engine: SharedEngine) -> None:
        thread = self._any_live()
        engine.pause(thread)
        while True:
            status = engine.thread(thread).summary.status
            if status == "paused":
                engine.resume(thread)
                return
            if status != "running":
                return
            time.sleep(0.1)

    def _fork(self, engine: SharedEngine) -> None:
        thread = self._any_live()
        steps = engine.thread(thread).summary.steps
        kept = self._chance.randint(0, steps)
        fork = engine.fork(thread, cut=Cut(at=kept))
        self._crowd.kept[fork] = kept
        self._crowd.forked.update((thread, fork))
        self._crowd.live.add(fork)

    def _remove(self, engine: SharedEngine) -> None:
        thread = self._chance.choice([self._any_live(), *self._crowd.ended[-20:]])
        engine.remove_thread(thread)
        self._crowd.gone.add(thread)

    def _archive(self, engine: SharedEngine) -> None:
        target = self._home / "archive"
        done = engine.archive([], older_than_ms=5000, to=target)
        self._crowd.archives.add(target)
        self.done["archived"] += len(done.threads)

    def _prune(self, engine: SharedEngine) -> None:
        engine.prune(older_than_ms=60_000)

    def _copy(self, engine: SharedEngine) -> None:
        del engine
        target = self._home / f"copy-{self._chance.randrange(2)}"
        with closing(open_store(self._address, create=False, is_visible=True)) as store:
            copy = DirectoryBackend.open(target, create=True)
            for one, other in ((store, copy), (copy, store)):
                copy_store(one, other, replace=False, progress=lambda _kind, _count: None)
        for problem in check_store(copy, progress=lambda _kind, _count: None).problems:
            self._crowd.report("copy", str(problem))

    def _twins(self, engine: SharedEngine) -> None:
        """Start a thread under one id from two machines at once."""
        thread = new_thread_id(time.time_ns() // 1_000_000, self._chance.randbytes(10))
        prompt, params = self._crowd.plan()
        other = Store.open(self._home.with_suffix(".twin"))

        def start(machine: SharedEngine) -> bool:
            try:
                machine.run("soak", prompt=prompt, params=params, thread=thread)
            except UncagedError:
                return False
            return True

        with (
            shared_engine(
                self._address, other, is_visible=True, report=lambda _sentence: None
            ) as twin,
            ThreadPoolExecutor() as pool,
        ):
            started = sum(pool.map(start, (engine, twin)))
        if started != 1:
            self._crowd.report("people", f"{thread} was started {started} times")
        self._crowd.live.add(thread)

    def _any_live(self) -> ThreadId:
        return self._chance.choice([*self._crowd.live, *self._crowd.ended[-1:]])


@contextmanager
def people_at_work(people: list[Person]) -> Iterator[threading.Event]:
    """Let people live until the event is set, at the latest at the end of the block."""
    ending = threading.Event()
    with ThreadPoolExecutor() as pool:
        living = [pool.submit(person.live, ending) for person in people]
        try:
            yield ending
        finally:
            ending.set()
        for one in living:
            one.result()
