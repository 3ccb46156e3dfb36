"""Route `/metrics`: sums over the store's threads, in the text format of Prometheus.

They are read from the index of threads, as a list of threads is: the journals of ended threads are
not opened, and a scrape soon after another has the same numbers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio
import anyio.to_thread
from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.services.listening import App, Receive, Scope, Send

from .plain_text import answer, refuse

PATH = "/metrics"
FRESH_S = 10.0
SHARE = 20
"""The numbers of a large store hold longer: reading them takes a twentieth of the time at most."""
MOST_SHARED = 5000
"""The newest threads of a shared store, of which the sums are."""
TIMEOUT_S = 60.0


def route(engine: Engine) -> App:
    """Return the application that answers with the metrics."""
    scrape = Scrape(engine)
    lock = anyio.Lock()

    async def serve(scope: Scope, _receive: Receive, send: Send) -> None:
        if await refuse(scope, send, PATH):
            return
        text: str | None = None
        with anyio.move_on_after(TIMEOUT_S):
            async with lock:
                with suppress(UncagedError):  # a shared store is away
                    text = await anyio.to_thread.run_sync(scrape.text, abandon_on_cancel=True)
        if text is None:
            await answer(scope, send, 503, "the store does not answer\n")
        else:
            await answer(scope, send, 200, text, kind=scrape.kind)

    return serve


class Scrape:
    """The last numbers, and until when they hold."""

    def __init__(self, engine: Engine, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock_s = clock_s
        self._text = ""
        self._until_s: float | None = None

    @property
    def kind(self) -> str:
        """Return the media type of the text."""
        from prometheus_client import CONTENT_TYPE_LATEST  # with the first scrape

        return str(CONTENT_TYPE_LATEST)

    def text(self) -> str:
        """Return the metrics."""
        begin_s = self._clock_s()
        if self._until_s is None or begin_s >= self._until_s:
            engine = self._engine
            if engine.is_shared:
                self._text = text_of(engine.page(limit=MOST_SHARED).threads, 0)
            else:
                queued = sum(int(one.get("queued") or 0) for one in engine.working())
                self._text = text_of(engine.threads(), queued)
            end_s = self._clock_s()
            self._until_s = end_s + max(FRESH_S, SHARE * (end_s - begin_s))
        return self._text


def text_of(threads: Iterable[ThreadSummary], queued: int) -> str:
    """Return the sums over threads as text. queued: agents that wait for a free slot."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    by_status: Counter[tuple[str, str]] = Counter()
    steps: Counter[str] = Counter()
    tokens: Counter[tuple[str, str]] = Counter()
    cost: dict[str, float] = {}
    for one in threads:
        by_status[one.name, one.status] += 1
        steps[one.name] += one.steps
        tokens[one.name, "input"] += one.spent.input_tokens
        tokens[one.name, "output"] += one.spent.output_tokens
        cost[one.name] = cost.get(one.name, 0.0) + one.spent.cost
    # sums of what the store has: removed threads are in none of them, so they are no counters
    registry = CollectorRegistry()

    def gauge(name: str, help: str, *labels: str) -> Gauge:
        return Gauge(f"uncaged_{name}", help, labels, registry=registry)

    found = gauge("threads", "Threads of the store.", "flow", "status")
    for (flow, status), number in by_status.items():
        found.labels(flow, status).set(number)
    found = gauge("steps", "Finished steps of the store's threads.", "flow")
    for flow, number in steps.items():
        found.labels(flow).set(number)
    found = gauge("tokens", "Tokens that the store's threads used up.", "flow", "direction")
    for (flow, direction), number in tokens.items():
        found.labels(flow, direction).set(number)
    found = gauge("cost_usd", "Cost of the store's threads, where prices are known.", "flow")
    for flow, dollars in cost.items():
        found.labels(flow).set(dollars)
    gauge("agents_queued", "Agents that wait for a free slot on this machine.").set(queued)
    return generate_latest(registry).decode()
