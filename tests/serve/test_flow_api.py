"""Endpoints of flows, proposals and the machine, called as functions."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from testbed.journals import NOW_MS
from testbed.processes import end_workers
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.services.proposals import Proposals
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.threads.starting import Chance
from uncaged_serve.api import machine
from uncaged_serve.api.endpoints import ApiEndpoint, Asked, ConflictError
from uncaged_serve.api.machine import CostTable
from uncaged_serve.api.table import ENDPOINTS

SOURCE = """
descriptor = {
    "contract": 1, "name": "look", "description": "Look.", "kind": "task",
    "policy": {POLICY},
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def run(input, options):
    yield {"null": {"value": 1}}
    return {"success": True, "message": "done"}
"""
FIRST = SOURCE.replace("POLICY", '"null": {}')
WIDER = SOURCE.replace("POLICY", '"null": {}, "sleep": {}')


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A store with the flow `look` in two versions, the second with a wider policy."""
    engine = Engine(Store.open(tmp_path_factory.mktemp("looking") / "store"))
    for source in (FIRST, WIDER):
        engine.add("look", source.encode(), accept=lambda _: True)
    return engine


def answer(
    engine: Engine, method: str, path: str, values: dict[str, str] | None = None, **more: Any
) -> Any:
    """Return an endpoint's answer as a client gets it; it fits the endpoint's schema."""
    [endpoint] = [one for one in ENDPOINTS if (one.method, one.path) == (method, path)]
    document = json.loads(json.dumps(endpoint.handler(engine, _asked(endpoint, values, more))))
    if endpoint.answer is not None:
        jsonschema.validate(document, endpoint.answer.model_json_schema())
    return document


def _asked(endpoint: ApiEndpoint, values: dict[str, str] | None, more: dict[str, Any]) -> Asked:
    return Asked(
        path=values or {},
        query=endpoint.query and endpoint.query.model_validate(more),
        body=endpoint.body and endpoint.body.model_validate(more),
    )


def test_a_flow_is_shown_with_its_versions_and_what_it_may_do(looking: Engine) -> None:
    listed = answer(looking, "GET", "/api/flows")
    assert [one["versions"] for one in listed["flows"] if one["flow"] == "look"] == [2]
    shown = answer(looking, "GET", "/api/flows/{flow}", {"flow": "look"})
    assert shown["versions"][0]["hash"] == shown["hash"]
    assert len(shown["mayDo"]) == 2
    assert shown["parameters"]["properties"] == {"name": {"type": "string"}}
    drawn = answer(looking, "GET", "/api/flows/{flow}/graph", {"flow": "look"})
    assert (drawn["origin"], drawn["drawing"]["nodes"]) == ("none", [])
    with pytest.raises(NotFoundError, match="look"):
        answer(looking, "GET", "/api/flows/{flow}", {"flow": "lok"})


def test_two_versions_are_compared_and_the_former_one_comes_back(looking: Engine) -> None:
    """The difference names the permission first; a rollback is a move of the name with history."""
    new, old = [
        one["hash"]
        for one in answer(looking, "GET", "/api/flows/{flow}", {"flow": "look"})["versions"]
    ]
    found = answer(looking, "GET", "/api/difference", old=old, new=new)
    assert next(iter(found["sections"])) == "policy"
    assert found["sections"]["policy"][0].startswith("+ ")
    path = {"flow": "look"}
    assert answer(looking, "POST", "/api/flows/{flow}/rollback", path)["hash"] == old
    assert answer(looking, "POST", "/api/flows/{flow}/rollback", path, hash=new)["hash"] == new
    assert answer(looking, "POST", "/api/flows/{flow}/disable", path)["enabled"] is False
    assert answer(looking, "POST", "/api/flows/{flow}/enable", path)["enabled"] is True


def test_a_proposal_that_asks_for_more_needs_what_it_asks_for(looking: Engine) -> None:
    """It is accepted only with the sentences that the person saw, about permissions and about past
    threads that speak against it.
    """
    before = looking.registry.entry("look").hash
    wider = WIDER.replace('"sleep": {}', '"sleep": {}, "now": {}')
    proposed = Proposals(looking.store).propose(
        looking.registry.entry("look").name,
        before=before,
        after=read_bundle(wider.encode(), KNOWN),
        by="test",
        evidence={"contradictions": ["a past result differs"]},
        threads=(),
        now_ms=1,
    )
    listed = answer(looking, "GET", "/api/proposals", flow="look")["proposals"]
    assert [one["proposalId"] for one in listed] == [proposed.id]
    path = {"proposal": proposed.id}
    shown = answer(looking, "GET", "/api/proposals/{proposal}", path)
    assert len(shown["widened"]) == 1
    accept = "/api/proposals/{proposal}/accept"
    with pytest.raises(ConflictError) as refused:
        answer(looking, "POST", accept, path)
    assert refused.value.document["widened"] == shown["widened"]
    assert looking.registry.entry("look").hash == before
    assert shown["contradictions"] == ["a past result differs"]
    with pytest.raises(RefusedError, match="not proved: a past result differs"):
        answer(looking, "POST", accept, path, granted=shown["widened"])
    decided = answer(looking, "POST", accept, path, granted=shown["widened"], contradicted=True)
    assert (decided["state"], decided["hash"]) == ("accepted", shown["to"])
    assert looking.registry.entry("look").hash == shown["to"]


ROLES = """
descriptor = {
    "contract": 1, "name": "two", "description": "Two roles.", "kind": "workflow",
    "roles": {
        "first": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object"}},
        "second": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object"}},
    },
    "policy": {"role": {}},
    "graph": {"__start__": "first", "first": "second", "second": "__end__"},
}


def run(input, options):
    yield {"role": {"name": "first"}}
    yield {"role": {"name": "second"}}
"""


@pytest.mark.slow
def test_the_graph_lights_the_role_that_a_thread_asks(looking: Engine) -> None:
    """Of a live thread, here one that waits for a person; of an ended one nothing."""
    looking.add("two", ROLES.encode(), accept=lambda _: True)
    thread = looking.run("two", prompt="", options=RunOptions(agents={"": "person"}))
    try:
        assert [one for one in looking.follow(thread) if one.kind == "status"]
        where = {"flow": "two"}
        assert answer(looking, "GET", "/api/flows/{flow}/graph", where)["live"] == ["first"]
        looking.kill(thread)
        shown = answer(looking, "GET", "/api/flows/{flow}/graph", where)
        assert (shown["live"], shown["running"]) == ([], False)
    finally:
        end_workers(looking.store.root)


def test_the_machine_is_described(looking: Engine) -> None:
    """Nothing runs, and nothing cost anything."""
    found = answer(looking, "GET", "/api/machine")
    assert (found["workers"], found["store"]) == ([], str(looking.store.root))
    assert found["limits"]["max_rounds"] == 10
    costs = answer(looking, "GET", "/api/machine/costs")
    assert costs.pop("complete") is costs.pop("modelsComplete") is True
    assert costs == {"days": [], "flows": [], "models": []}


def test_costs_have_each_usage_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs of a model have those of failed steps, and of a fork only its own. Sums for which
    not all journals were read say so.
    """
    engine = Engine(store, Chance(clock_ms=lambda: NOW_MS + 1000))
    bundle = granted(store, COUNT)
    usage = {"model": "m", "inputTokens": 10, "cost": 0.5}
    failed = script_of(bundle, number=1).done(1, outcome=1, usage=usage).intent(2)
    failed.step(2, error={"kind": "agent", "message": "no", "usage": usage})
    source = {"threadId": failed.thread, "seq": 1}
    fork = script_of(bundle, number=2, forkFrom=source).done(1, outcome=1, usage=usage)
    for script in (failed, fork.done(2, outcome=2, usage={**usage, "cost": 2.0})):
        place_script(store, bundle, script.end("completed"))
    monkeypatch.setattr(machine, "MOST_READ", 1)
    costs = answer(engine, "GET", "/api/machine/costs")
    assert costs["complete"] is costs["modelsComplete"] is False
    assert costs["days"][0]["cost"] == 2.0
    costs = answer(engine, "GET", "/api/machine/costs")
    assert costs["complete"] is costs["modelsComplete"] is True
    [[day], [flow], [model]] = costs["days"], costs["flows"], costs["models"]
    assert day["cost"] == flow["cost"] == model["cost"] == 3.0
    assert (model["name"], model["tokens"]) == ("m", 30)


def test_costs_are_summed_by_name() -> None:
    table = CostTable()
    table.add("a", 10, 0.5, unpriced=False)
    table.add("a", 5, 0.25, unpriced=True)
    table.add("b", 1, 3.0, unpriced=False)
    assert [tuple(row.values()) for row in table.rows()] == [
        ("b", 1, 1, 3.0, False),
        ("a", 2, 15, 0.75, True),
    ]


@pytest.mark.slow
def test_the_checks_of_the_machine_are_those_of_doctor(looking: Engine) -> None:
    names = {one["name"] for one in answer(looking, "GET", "/api/machine/doctor")["checks"]}
    assert {"python", "git", "store", "registry"} <= names
