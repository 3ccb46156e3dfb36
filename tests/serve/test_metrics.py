"""Sums over threads for Prometheus, and the health of a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from testbed.bundles import COUNT, place
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.journal.usage import Spent
from uncaged_engine.state.states import State
from uncaged_serve.health import is_usable
from uncaged_serve.metrics import FRESH_S, Scrape, text_of


def summary(name: str, status: State, steps: int = 0, spent: Spent | None = None) -> ThreadSummary:
    return ThreadSummary(
        thread_id=ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS"),
        hash=BundleHash("C9NMV6V2TQT81"),
        name=name,
        status=status,
        steps=steps,
        started_ms=0,
        updated_ms=0,
        message="",
        success=None,
        spent=spent or Spent(),
    )


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, dict(sample.labels), sample.value


def value(text: str, name: str, **labels: str) -> float:
    [found] = [number for one, own, number in samples(text) if (one, own) == (name, labels)]
    return found


def test_threads_are_counted_by_flow_and_status() -> None:
    """The text has a line for each flow and status, whatever characters a flow's name has, and the
    sums of steps, tokens and cost by flow.
    """
    spent = Spent(input_tokens=100, output_tokens=20, cost=0.5)
    strange = 'b"\n\\'
    text = text_of(
        [
            summary("a", "completed", 3, spent),
            summary("a", "completed", 4, spent),
            summary("a", "running"),
            summary(strange, "failed"),
        ],
        2,
    )
    assert value(text, "uncaged_threads", flow="a", status="completed") == 2
    assert value(text, "uncaged_threads", flow="a", status="running") == 1
    assert value(text, "uncaged_threads", flow=strange, status="failed") == 1
    assert value(text, "uncaged_steps", flow="a") == 7
    assert value(text, "uncaged_tokens", flow="a", direction="input") == 200
    assert value(text, "uncaged_tokens", flow="a", direction="output") == 40
    assert value(text, "uncaged_cost_usd", flow="a") == 1.0
    assert value(text, "uncaged_agents_queued") == 2


@pytest.mark.parametrize(("took_s", "holds_s"), [(0.0, FRESH_S), (2.0, 40.0)])
def test_the_store_is_read_again_after_a_while(
    engine: Engine, took_s: float, holds_s: float
) -> None:
    """A scrape soon after another has its numbers; the longer it takes to read the store, the
    longer they hold.
    """
    times = iter((0.0, took_s, took_s + holds_s - 1, took_s + holds_s, took_s + holds_s))
    scrape = Scrape(engine, lambda: next(times))
    assert "uncaged_threads{" not in scrape.text()
    place(engine.store, COUNT)
    assert "uncaged_threads{" not in scrape.text()
    assert value(scrape.text(), "uncaged_threads", flow="count", status="interrupted") == 1


def test_a_store_is_usable_while_it_can_be_listed(engine: Engine) -> None:
    """A store whose directory of journals is gone is not healthy."""
    assert is_usable(engine.store)
    shutil.rmtree(engine.store.logs)
    assert not is_usable(engine.store)
