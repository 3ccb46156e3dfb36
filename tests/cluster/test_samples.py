"""Shipped samples in a directory and on a shared store, with the same outcomes, clock and ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import thread_id
from testbed.driving import driven_here, no_child, no_driver
from testbed.journals import NOW_MS
from testbed.postgres import PostgresServer
from testbed.sample_files import fill
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store
from uncaged_effects.all import AllBody, AllHandler, ConcurrentEffects
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.effect_kinds import handler_for
from uncaged_engine.journal import lines
from uncaged_engine.shared import driving
from uncaged_engine.shared.driving import ThreadDriving, WorkerPlace
from uncaged_engine.shared.replica import replica
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.steps.request import WorkerContext
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.starting import Chance
from uncaged_engine.threads.transfer import export_thread
from uncaged_templates.recipes import SAMPLES, flows

pytestmark = pytest.mark.slow
LARGE = "v" * (lines.SPILL_BYTES + 1000)
CANNED: dict[str, object] = {
    "http": {"status": 200, "headers": {}, "body": LARGE},
    "fetch": {"url": "https://a.example", "text": LARGE, "links": []},
    "llm": {"text": "a summary"},
}
"""Outcomes in the place of other hosts' answers, with blobs."""
Performed = tuple[list[Mapping[str, object]], Outcome]
"""Paths that an effect had journalled, and its outcome."""
CHANCE = Chance(clock_ms=lambda: NOW_MS, entropy=bytes)


class RecordedHandler(Handler):
    """Handler of one kind whose outcomes are recorded at the first run, and repeated at others,
    with the paths that it had journalled.
    """

    def __init__(self, real: Handler, performed: dict[str, Performed]) -> None:
        self._real = real
        self._performed = performed
        self.kind, self.limits = real.kind, real.limits
        self.recovery, self.only_waits = real.recovery, real.only_waits

    def perform(self, body: object, context: EffectContext) -> Outcome:
        key = f"{context.key}/{context.part}"
        if key in self._performed:
            paths, outcome = self._performed[key]
            for one in paths:
                context.remember_paths(one)
        else:
            paths = []
            outcome = self._first(body, context, paths)
            self._performed[key] = (paths, outcome)
        return outcome

    def _first(
        self, body: object, context: EffectContext, paths: list[Mapping[str, object]]
    ) -> Outcome:
        if self.kind in CANNED:
            return Answer(fields={"outcome": CANNED[self.kind]})
        remember = context.remember_paths

        def noted(found: Mapping[str, object]) -> Mapping[str, object]:
            paths.append(found)
            return remember(found)

        context.thread = replace(context.thread, remember_paths=noted)
        return self._real.perform(body, context)


class SerialAll(AllHandler):
    """Handler of `all` that performs one part after the other, since others end in any order."""

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("all", AllBody, body)
        assert not isinstance(options, Failure)
        return ConcurrentEffects(
            options.effects, context, stop_early=options.on_failure == "stop"
        ).perform(1)


class UndrivenEngine(Engine):
    """Engine of a directory whose threads the test drives."""

    def _drive(self, *_place: Any, **_options: Any) -> None:
        """Leave the thread to the test."""


def recorded_handlers() -> Callable[[str], Handler]:
    """Return the handlers of the runs of one thread."""
    performed: dict[str, Performed] = {}

    def found(kind: str) -> Handler:
        real = handler_for(kind)
        return SerialAll() if real.is_composite else RecordedHandler(real, performed)

    return found


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A directory with every sample in it."""
    engine = UndrivenEngine(Store.open(tmp_path_factory.mktemp("local") / "store"), CHANCE)
    for name, source, _ in flows():
        engine.add(name, source, accept=lambda _: True, origin="sample")
    return engine


@pytest.fixture(scope="module")
def shared(
    local: Engine, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedEngine]:
    """A shared store with the same flows."""
    address = postgres.address(postgres.new_schema())
    home = Store.open(tmp_path_factory.mktemp("shared") / "home")
    with shared_engine(
        address,
        home,
        is_visible=True,
        report=lambda _reason: None,
        chance=CHANCE,
        made=lambda _address: None,
    ) as engine:
        copy_store(
            DirectoryBackend(local.store),
            engine._backend,
            replace=True,
            progress=lambda _kind, _count: None,
        )
        engine.refresh()
        yield engine


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name[:-12])
def test_a_sample_has_the_same_export_in_both_stores(
    path: Path,
    local: Engine,
    shared: SharedEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each byte of the archive: bundle, journal and blobs of the sample's first example."""
    place = tmp_path / "place"
    place.mkdir()
    fill(place)
    recipe = json.loads(path.read_bytes())
    name = path.name.removesuffix(".recipe.json")
    number = sorted(SAMPLES.glob("*.json")).index(path)
    run: dict[str, Any] = {
        "prompt": "",
        "params": recipe["examples"][0].get("params") or {},
        "options": RunOptions(directory=place),
        "thread": thread_id(number),
    }
    handlers = recorded_handlers()
    here, there = local.run(name, **run), shared.run(name, **run)
    driven_here(local.store, here, directory=place, handlers=handlers)
    monkeypatch.setattr(driving, "WorkerContext", partial(WorkerContext, handlers=handlers))
    drive_there(shared, there, place)
    archives: list[Path] = []
    for engine in (local, shared):
        archives.append(tmp_path / f"{len(archives)}.tar.zst")
        export_thread(engine, run["thread"], archives[-1])
    assert local.thread(run["thread"]).summary.steps > 0
    assert archives[0].read_bytes() == archives[1].read_bytes()


def drive_there(engine: SharedEngine, thread: ThreadId, place: Path) -> None:
    """Drive a thread of a shared store to its end, as one of its workers does."""
    bundle, _, _ = engine.store.locate_thread(thread)
    where = WorkerPlace(directory=place, environment={}, clock_ms=CHANCE.clock_ms)
    problems: list[str] = []
    with replica(engine._backend, Store.open(place / "worker"), CHANCE) as copies:
        made = ThreadDriving(
            copies,
            where,
            lambda _thread, problem: problems.append(problem),
            no_child,
            no_driver,
        )
        with closing(made):
            made.drive(bundle, thread, 0, lambda _exchange: None)
    assert problems == []
