"""Restoration of a lost page from the journal, at a session without a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from testbed.roles import THREAD, EffectHarness
from testbed.scripted_sessions import scripted_session
from testbed.scripting import bundle
from uncaged_browser.effect.handler import BrowserHandler
from uncaged_bundles.ids import bundle_hash
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.outcomes import Answer, Outcome, Void
from uncaged_engine.journal.codec import encode
from uncaged_engine.services.blobs import BlobDirectory

PAGE = "https://shop.test/cart"
CLICK = {"do": "click", "target": [{"text": "Add"}]}
SEARCH = {"do": "search", "words": "lamp"}
TIMEOUT = {"kind": "timeout", "message": "too late"}


def perform(
    store: Store, steps: list[tuple[Mapping[str, object], Mapping[str, object]]], *, redo: bool
) -> tuple[Outcome, list[Mapping[str, Any]]]:
    """Perform a read after the page was lost; return its outcome, and the operations that the
    session performed.

    Args:
        steps: intents and outcomes since the checkpoint.
    """
    saved = json.dumps({"url": PAGE, "state": {}}).encode()
    checkpoint = BlobDirectory(store.blobs).put(saved)
    journal: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
        ({"browser": {"do": "navigate", "url": PAGE}}, {"outcome": {}, "checkpoint": checkpoint}),
        *steps,
    ]
    harness = EffectHarness(store=store, bundle=bundle({}), start={}, environment={})
    lines: list[Mapping[str, object]] = [{"format": 1}]
    for seq, (intent, result) in enumerate(journal, 1):
        lines += [{"seq": seq, "intent": intent}, {"seq": seq, **result}]
        harness.steps.append({"seq": seq, **result})
    path = store.data_path(bundle_hash(b""), THREAD)
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{encode(one)}\n" for one in lines))
    performed: list[Mapping[str, Any]] = []
    opened: list[str] = []

    def reply(request: Mapping[str, Any], _: int) -> Mapping[str, Any]:
        match request["op"]:
            case "status":
                return {"value": {"threads": []}}
            case "open":
                opened.append(request["context"]["name"])
                return {"value": {"new": True}}
            case "perform" if not opened:
                return {"missing": request["name"]}
            case "perform":
                performed.append(request["operation"])
                return {"value": {"url": request["operation"].get("url", PAGE), "title": ""}}
            case _:
                return {"value": {"closed": True}}

    context = harness.context(len(journal) + 1, redo=redo)
    with scripted_session(store, reply):
        outcome = BrowserHandler().perform({"do": "address"}, context)
    return outcome, performed


@pytest.mark.parametrize(
    "step",
    [
        ({"http": {"url": PAGE}}, {"error": TIMEOUT}),
        ({"role": {"name": "coder"}}, {"error": TIMEOUT}),
        ({"fs": CLICK}, {"error": TIMEOUT}),
        ({"browser": {"do": "view"}}, {"error": {"kind": "crashed", "message": "gone"}}),
        ({"browser": {"do": "query_content", "text": "when?"}}, {"error": TIMEOUT}),
        ({"browser": CLICK}, {"error": {"kind": "not-found", "message": "no such button"}}),
    ],
    ids=lambda step: next(iter(step[0])),
)
@pytest.mark.parametrize("redo", [False, True])
def test_a_failed_step_that_changes_no_page_does_not_stop_the_restoration(
    store: Store, step: tuple[Mapping[str, object], Mapping[str, object]], *, redo: bool
) -> None:
    """Failures of other effects, and of what reads, leave the page of the checkpoint as it was."""
    outcome, performed = perform(store, [step], redo=redo)
    assert isinstance(outcome, Answer), outcome
    assert [one["do"] for one in performed] == ["navigate", "address"]


@pytest.mark.parametrize(
    "step",
    [
        ({"browser": CLICK}, {"outcome": {"url": PAGE}, "acted": True}),
        ({"browser": {**CLICK, "label": "Add it"}}, {"error": TIMEOUT}),
        ({"browser": SEARCH}, {"error": TIMEOUT}),
    ],
    ids=["acted", "click", "search"],
)
def test_a_step_that_may_have_acted_is_repeated_by_redo_alone(
    store: Store, step: tuple[Mapping[str, object], Mapping[str, object]]
) -> None:
    """The thread stops, and names this step and no other; with --redo it is done again."""
    steps = [({"http": {"url": PAGE}}, {"error": TIMEOUT}), step]
    outcome, performed = perform(store, steps, redo=False)
    assert isinstance(outcome, Void) and outcome.doubt
    assert "step 3 acted on its page after the checkpoint of step 1" in outcome.message
    assert performed == []


@pytest.mark.parametrize(
    ("body", "again"), [({**CLICK, "label": "Add it"}, "click"), (SEARCH, "navigate")]
)
def test_redo_does_what_may_have_acted_once_more(
    store: Store, body: Mapping[str, object], again: str
) -> None:
    """Only the operations of the page are done again, a search with its provider's address."""
    steps: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
        ({"http": {"url": PAGE}}, {"error": TIMEOUT}),
        ({"browser": body}, {"error": TIMEOUT}),
    ]
    outcome, performed = perform(store, steps, redo=True)
    assert isinstance(outcome, Answer), outcome
    assert [one["do"] for one in performed] == ["navigate", again, "address"]
