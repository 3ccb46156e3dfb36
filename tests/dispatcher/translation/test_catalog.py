"""The catalogue of flows: what it finds, and how it follows the registry."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.packs.registered import RegisteredPacks
from uncaged_dispatcher.translation.catalog import Catalog, query_of
from uncaged_engine.api import Engine


def source(
    name: str, description: str, *, patterns: tuple[str, ...] = (), text: str = "", pack: str = ""
) -> bytes:
    descriptor = {
        "contract": 1,
        "name": name,
        "description": description,
        "kind": "task",
        "patterns": list(patterns),
        **({"pack": pack} if pack else {}),
        "examples": [{"sentence": text}] if text else [],
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "key": {"type": "string", "forPeople": True}},
            "required": ["n", "key"],
        },
    }
    return f"descriptor = {descriptor!r}\n\n\ndef run(input, options):\n    yield {{}}\n".encode()


@pytest.fixture
def engine(store: Store) -> Engine:
    engine = Engine(store)
    for name, description, more in (
        ("weather", "Forecast for a city.", {"text": "will it rain in Oslo"}),
        ("lights", "Switch lamps.", {"patterns": ("turn (on | off) the lamp",)}),
        ("tokyo", "東京の天気を調べる", {}),
    ):
        engine.add(name, source(name, description, **more), accept=bool)
    return engine


def catalog(engine: Engine) -> Catalog:
    return Catalog(engine.store)


@pytest.mark.parametrize(
    ("sentence", "flow"),
    [
        ("rains in Bergen?", "weather"),
        ("turn that lamp down", "lights"),
        ("a FORECAST please", "weather"),
        ("明日の天気は", "tokyo"),
    ],
)
def test_a_sentence_finds_its_flow(engine: Engine, sentence: str, flow: str) -> None:
    """A flow is found by words of its description, patterns and examples, in any inflection."""
    assert catalog(engine).search(sentence, limit=5)[0].flow == flow


def test_a_model_is_not_shown_what_only_a_person_may_set(engine: Engine) -> None:
    """The parameters of an entry are without those for people."""
    [entry] = catalog(engine).search("forecast", limit=1)
    assert entry.parameters["required"] == ["n"]
    assert list(entry.parameters["properties"]) == ["n"]


def test_the_catalogue_follows_the_registry(engine: Engine) -> None:
    """A changed flow is found by its new words only, a disabled one not at all."""
    assert catalog(engine).search("forecast", limit=1)
    engine.add("weather", source("weather", "Tells the temperature."), accept=bool)
    assert [entry.flow for entry in catalog(engine).search("temperature", limit=5)] == ["weather"]
    assert catalog(engine).search("forecast", limit=5) == []
    engine.registry.set_enabled("weather", False)
    assert catalog(engine).search("temperature", limit=5) == []


def test_a_pack_is_that_of_its_file_or_of_the_descriptor(engine: Engine) -> None:
    """A search in a pack finds the flows that its file lists, and those that name it themselves;
    flows of a disabled pack are not found at all.
    """
    packs = RegisteredPacks(engine.store)
    packs.add(b"name: home\ndescription: At home.\nflows: [lights, weather]\n", "home.yaml")
    engine.add("lamps", source("lamps", "More lamps.", pack="home"), accept=bool)
    found = catalog(engine).find("lamps and rain", packs=["home"], limit=9).entries
    assert {(entry.flow, entry.pack) for entry in found} == {
        ("lights", "home"),
        ("lamps", "home"),
        ("weather", "home"),
    }
    assert catalog(engine).find("lamps", packs=["garden"], limit=9).entries == ()
    packs.set_enabled("home", False)
    assert catalog(engine).search("lamps and rain", limit=9) == []


def test_named_flows_are_left_out(engine: Engine) -> None:
    """A second search skips the flows of the first."""
    assert catalog(engine).find("rain", without=["weather"], limit=5).entries == ()


@pytest.mark.parametrize(
    "sentence", ["", "?!", '" OR "', "NEAR(a b) AND NOT *", "\x00 \udcff", "a" * 100_000]
)
def test_any_sentence_is_a_query(engine: Engine, sentence: str) -> None:
    """Operators of the query language, control characters and long words are plain text."""
    catalog(engine).search(sentence, limit=5)


def test_a_query_has_a_bounded_number_of_words() -> None:
    """A sentence of a million different words makes a query of 200."""
    assert query_of(" ".join(map(str, range(1_000_000)))).count(" OR ") == 199


def test_a_damaged_file_is_made_again(engine: Engine) -> None:
    """A catalogue that is no database, or of another layout, answers as a new one does."""
    assert catalog(engine).search("forecast", limit=1)
    path = engine.store.root / "dispatcher" / "catalog.sqlite3"
    path.write_bytes(b"no database" * 1000)
    assert catalog(engine).search("forecast", limit=1)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    assert catalog(engine).search("forecast", limit=1)


def test_many_searches_at_once_fill_one_file(engine: Engine) -> None:
    """Searches that begin together on a fresh store all find the flow."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: catalog(engine).search("forecast", limit=1), range(16)))
    assert [[entry.flow for entry in entries] for entries in found] == [["weather"]] * 16
