"""Telemetry that fails: a collector that is away, and an observer with a bug."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest
from testbed.bundles import COUNT, granted
from testbed.processes import await_end, workers_of
from testbed.steering import finish
from uncaged_bundles.ids import ThreadId
from uncaged_engine import plugins
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.observing import EffectObserver, ObservedEffect, ObservedThread
from uncaged_engine.journal.infolog import InfoLog
from uncaged_engine.settings.config import Config
from uncaged_engine.steps import observing

AWAY = "http://127.0.0.1:9"


@pytest.mark.slow
def test_a_collector_that_is_away_keeps_no_thread_and_no_worker(engine: Engine) -> None:
    """The thread completes, its worker ends, and the thread's debug log says that nothing was
    sent.
    """
    bundle = granted(engine.store, COUNT)
    options = RunOptions(
        environment={"PATH": os.environ["PATH"], "OTEL_EXPORTER_OTLP_ENDPOINT": AWAY}
    )
    thread = engine.run("count", prompt="", options=options)
    workers = workers_of(engine.store.root)
    finish(engine, thread)
    assert all(await_end(worker.pid) for worker in workers)
    lines = engine.store.info_path(bundle.hash, thread).read_text().splitlines()
    remarks = [json.loads(line)["content"] for line in lines if "OpenTelemetry: " in line]
    assert remarks


class Broken:
    """Observer that fails at every call about an effect."""

    def thread(self, thread: ObservedThread) -> Broken:
        del thread
        return self

    def effect(self, effect: ObservedEffect) -> EffectObserver:
        raise ValueError(f"no step {effect.seq}")

    def step(self, seq: int, record: Mapping[str, object]) -> None:
        raise ValueError(f"no step {seq}: {record}")

    def flushed(self, seconds: float) -> None:
        raise ValueError(f"no flush of {seconds} s")

    def queued(self, waits: bool) -> None:
        raise ValueError(f"no queue: {waits}")

    def left(self, word: str, end: Mapping[str, object] | None, steps: int) -> None:
        raise ValueError(f"no end: {word}, {end}, {steps}")

    def close(self, timeout_s: float) -> None:
        raise ValueError(f"not within {timeout_s} s")


def test_a_fault_of_an_observer_is_noted_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an observer raises stays with it; the debug log has the first fault of a thread."""
    monkeypatch.setattr(plugins, "names", lambda **_: ("broken",))
    monkeypatch.setattr(plugins, "find", lambda *_, **__: lambda _request: Broken())
    bundle = granted(engine.store, COUNT)
    thread = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
    path = engine.store.info_path(bundle.hash, thread)
    path.parent.mkdir(parents=True)
    observers = observing.Observers()
    found = observers.observe(
        ObservedThread(
            thread_id=thread,
            hash=bundle.hash,
            start={"name": "count"},
            steps=0,
            has_roles=False,
            config=Config(),
            environment={"OTEL_TRACES_EXPORTER": "any"},
            interrupted=None,
        ),
        InfoLog(path, lambda: 0),
    )
    assert found is not None and not observers.is_empty
    found.flushed(1.0)
    found.step_written(1, b'{"seq":1,"role":"r","chain":"c"}\n')
    found.queued(True)
    observers.close(1.0)
    [line] = path.read_text().splitlines()
    assert "an observer failed: ValueError: no flush of 1.0 s" in line
