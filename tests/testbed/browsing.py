"""Web effects performed by their handlers, with scripted name resolution."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from uncaged_bundles.storage.store import Store
from uncaged_effects.fetch import FetchHandler
from uncaged_effects.http import HttpHandler
from uncaged_effects.search import SearchHandler
from uncaged_effects.web.client import Clients
from uncaged_engine.door.effects import Handler
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.settings.config import Config

from .roles import EffectHarness, role_bundle

HANDLERS: Mapping[str, Callable[[Clients], Handler]] = {
    "http": HttpHandler,
    "fetch": FetchHandler,
    "search": SearchHandler,
}


@dataclass(kw_only=True)
class Browser:
    """Performs web effects.

    addresses: the results of successive look-ups; the last one is repeated. waits: a look-up sets
    the first event and waits for the second.
    """

    store: Store
    addresses: dict[str, list[list[str]]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    waits: tuple[threading.Event, threading.Event] | None = None
    clients: Clients = field(init=False)

    def __post_init__(self) -> None:
        self.clients = Clients(self._look_up)

    def harness(
        self,
        kind: str,
        policy: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
        config: Config | None = None,
    ) -> EffectHarness:
        bundle = role_bundle(policy={kind: policy})
        return EffectHarness(
            store=self.store,
            bundle=bundle,
            start={},
            environment=environment or {},
            config=config or Config(),
        )

    def perform(self, harness: EffectHarness, body: object) -> Outcome:
        [kind] = harness.bundle.descriptor.policy.limits
        return HANDLERS[kind](self.clients).perform(body, harness.context(7))

    def _look_up(self, host: str, port: int) -> list[str]:  # noqa: ARG002 - as the machine's own
        self.looked_up.append(host)
        if self.waits is not None:
            self.waits[0].set()
            self.waits[1].wait()
        if host not in self.addresses:
            raise OSError(-2, "Name or service not known")
        answers = self.addresses[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def answered(outcome: Outcome) -> Any:
    assert isinstance(outcome, Answer), outcome
    return outcome.fields["outcome"]


def failed(outcome: Outcome) -> tuple[str, str]:
    """Kind and message."""
    assert isinstance(outcome, Failure), outcome
    return str(outcome.error["kind"]), str(outcome.error["message"])
