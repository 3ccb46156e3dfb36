"""Script effects performed without a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testbed.roles import EffectHarness
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.sandbox.bounds import Identity
from uncaged_engine.settings.config import Config

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
Perform = Callable[..., Outcome]


def bundle(policy: Mapping[str, object], parameters: Mapping[str, object] | None = None) -> Bundle:
    descriptor = {
        "contract": 1,
        "name": "demo",
        "description": "A demo.",
        "kind": "script",
        "policy": {"script": policy},
        "parameters": parameters or {},
    }
    return read_bundle(
        f"descriptor = {descriptor!r}\ndef run(input, options):\n    yield {{'null': {{}}}}\n".encode()
    )


def harness_for(
    store: Store,
    mechanism: str,
    policy: Mapping[str, object],
    params: Mapping[str, object] | None = None,
    **more: Any,
) -> EffectHarness:
    parameters = {
        "type": "object",
        "properties": {
            name: {"type": "string", "format": "path"} for name in params or {} if name == "path"
        },
    }
    usual: dict[str, Any] = {"environment": PATH, "config": Config(sandbox=mechanism)}  # type: ignore[arg-type]  # one of its words
    return EffectHarness(
        store=store,
        bundle=bundle(policy, parameters),
        start={"parameters": {"params": params or {}}},
        **(usual | more),
    )


def told(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome, Answer), outcome
    found = outcome.fields["outcome"]
    assert isinstance(found, dict)
    return found


def refusal(outcome: Outcome, kind: str = "policy") -> str:
    assert isinstance(outcome, Failure), outcome
    assert outcome.error["kind"] == kind
    return str(outcome.error["message"])


def objects_at(*places: Path) -> dict[Path, Identity]:
    return {place: (found.st_dev, found.st_ino) for place in places for found in (place.stat(),)}
