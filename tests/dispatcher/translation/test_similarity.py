"""Flows by an embedding model: what it finds, what is kept, and what a failing endpoint costs."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

import pytest
from testbed.embedding import embedded
from testbed.modelserver import ModelServer, Turn, fails, serving
from testbed.steering import finish, settle, written
from testbed.translations import reply, shown
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.packs.registered import RegisteredPacks
from uncaged_dispatcher.translation.catalog import Catalog, CatalogResult
from uncaged_dispatcher.translation.similarity import close_packs, fused
from uncaged_engine.api import Engine
from uncaged_models.embeddings import EmbeddingClient, embedding_model
from uncaged_templates import dispatching

from .test_catalog import source

KEY = "sesame-4711-sesame"


@pytest.fixture
def engine(store: Store) -> Engine:
    engine = Engine(store)
    engine.add("weather", source("weather", "Forecast for a city.", pack="sky"), accept=bool)
    engine.add("lights", source("lights", "Switch a lamp.", pack="home"), accept=bool)
    return engine


def use(engine: Engine, server: ModelServer, **more: object) -> None:
    """Configure the server as embedding model and as model."""
    wire = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
    config = {
        "embeddings": {**wire, "key": "secret:EMBED"},
        "models": {"m": wire},
        "secrets": {"EMBED": {"env": "EMBED"}},
        **more,
    }
    engine.store.config_path.write_text(json.dumps(config))


def found(engine: Engine, sentence: str, *, limit_s: float = 60.0, **more: Any) -> CatalogResult:
    model = embedding_model(engine.config, {"EMBED": KEY})
    assert model is not None
    client = EmbeddingClient(
        model,
        {},
        deadline=time.monotonic() + limit_s,
        on_cancel=lambda _action: contextlib.nullcontext(),
    )
    return Catalog(engine.store).find(sentence, limit=5, embedder=client, **more)


def test_a_flow_is_found_without_a_common_word(engine: Engine) -> None:
    """Similarity joins the order by words; a text is sent once, and again only when it changes."""
    with serving(embedded) as server:
        use(engine, server)
        result = found(engine, "shall I take an umbrella")
        assert [entry.flow for entry in result.entries] == ["weather", "lights"]
        assert [len(body["input"]) for body in server.asked] == [1, 2]
        assert {seen.path for seen in server.seen} == {"/v1/embeddings"}
        assert found(engine, "it is too dark").entries[0].flow == "lights"
        engine.add("weather", source("weather", "Tells what is wet."), accept=bool)
        found(engine, "it is too dark")
        assert [len(body["input"]) for body in server.asked] == [1, 2, 1, 1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        fails(401, message=f"wrong key {KEY}"),
        fails(500),
        Turn(body="<html>"),
        Turn(body=[]),
        Turn(body={"data": []}),
        Turn(body={"data": [{"index": 0, "embedding": []}]}),
        Turn(body={"data": [{"index": 0, "embedding": [0, 0]}]}),
        Turn(body={"data": [{"index": 0, "embedding": ["x"]}]}),
        Turn(body={"data": [{"index": "zero", "embedding": [1]}]}),
        Turn(body={"data": [7]}),
        Turn(body='{"data": [{"index": 0, "embedding": [1e999]}]}'),
        Turn(body="[" * 100_000),
    ],
)
def test_an_endpoint_that_fails_leaves_the_order_by_words(engine: Engine, answer: Turn) -> None:
    """The result has a note without secrets, and the flows that share words."""
    with serving(lambda _seen: answer) as server:
        use(engine, server)
        result = found(engine, "forecast please")
    assert [entry.flow for entry in result.entries] == ["weather"]
    assert "embeddings were not used" in result.note and KEY not in result.note


def test_a_silent_endpoint_costs_its_limit_and_no_more(engine: Engine) -> None:
    """A server that accepts the connection and never answers is given up in time."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        wire = {"baseUrl": f"http://127.0.0.1:{silent.getsockname()[1]}/v1", "model": "tiny"}
        engine.store.config_path.write_text(json.dumps({"embeddings": wire}))
        begin = time.monotonic()
        result = found(engine, "forecast please", limit_s=0.2)
    assert result.note and result.entries[0].flow == "weather"
    assert time.monotonic() - begin < 30


def test_packs_that_are_equally_near_are_ambiguous(engine: Engine) -> None:
    """By words or by vectors; a pack that the caller names is never ambiguous."""
    both = "rain in the dark"
    with serving(embedded) as server:
        use(engine, server)
        assert set(found(engine, both, threshold=0.05).ambiguous) == {"home", "sky"}
        assert found(engine, "rain", threshold=0.05).ambiguous == ()
        assert found(engine, both, threshold=0.05, packs=["sky"]).ambiguous == ()
    assert close_packs([("a", 1.0), ("b", 0.96), ("c", 0.9), ("", 1.0)], 0.05) == ["a", "b"]
    assert close_packs([("a", 1.0), ("b", 0.95)], 0.05) == []
    assert close_packs([("a", 0.0), ("b", 0.0)], 0.05) == []


def test_orders_are_joined_by_rank() -> None:
    """A flow that is good in both orders comes before one that leads one of them."""
    assert fused(["a", "b"], {"c": 0.9, "b": 0.8}) == ["b", "a", "c"]


@pytest.fixture
def translating(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The store with the dispatcher's flows."""
    monkeypatch.setenv("EMBED", KEY)
    for name, data in dispatching.flows():
        engine.add(name, data, accept=bool)
    return engine


def both(turn: Turn) -> Any:
    """A server of embeddings that answers as a model with one turn."""
    return lambda seen: embedded(seen) if seen.path.endswith("/embeddings") else turn


@pytest.mark.slow
def test_a_replay_asks_no_endpoint(translating: Engine) -> None:
    """The answer of the catalogue is in the journal, with its usage and without the key; `verify`
    sends nothing.
    """
    with serving(both(reply(("weather", {"n": 1})))) as server:
        use(translating, server)
        thread = translating.run("interpret", prompt="shall I take an umbrella")
        finish(translating, thread)
        asked = len(server.seen)
        paths = [seen.path.rpartition("/")[2] for seen in server.seen]
        assert paths == ["embeddings", "embeddings", "completions"]
        assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
        translating.verify(thread)
        assert len(server.seen) == asked
    first = next(line for line in written(translating, thread) if "outcome" in line)
    assert first["outcome"]["flows"][0]["flow"] == "weather"
    assert first["usage"]["inputTokens"] >= 21
    assert KEY not in json.dumps(written(translating, thread))


@pytest.mark.slow
def test_a_person_chooses_among_ambiguous_packs(translating: Engine) -> None:
    """With `packs: ask` the thread asks before a model gets the sentence, and shows it the flows of
    the chosen pack alone.
    """
    with serving(both(reply(("lights", {"n": 1})))) as server:
        use(translating, server, collisions={"packs": "ask"})
        thread = translating.run("interpret", prompt="rain in the dark")
        settle(translating, thread)
        intents = [line["intent"] for line in written(translating, thread) if "intent" in line]
        assert set(intents[-1]["ask"]["choices"]) == {"home", "sky", "any of them"}
        translating.answer(thread, "home")
        result = finish(translating, thread)
        assert result["data"]["calls"] == [{"flow": "lights", "params": {"n": 1}}]
        asked = [seen.body for seen in server.seen if seen.path.endswith("/completions")]
        assert [flow["flow"] for flow in shown(asked[0])["flows"]] == ["lights"]
    RegisteredPacks(translating.store).set_enabled("sky", False, known=("sky",))
    assert Catalog(translating.store).search("forecast", limit=3) == []
