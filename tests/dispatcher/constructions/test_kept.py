"""The files of learned constructions: changes by several processes, damage, stale schemas."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.constructions.construction import Construction, Phrases, learn
from uncaged_dispatcher.constructions.kept import Constructions
from uncaged_engine.api import Engine

PARAMETERS = {"type": "object", "properties": {"song": {"type": "string"}}}


def add_flow(engine: Engine, name: str, parameters: object = PARAMETERS) -> None:
    descriptor = {
        "contract": 1,
        "name": name,
        "description": "A flow.",
        "kind": "task",
        "parameters": parameters,
    }
    text = f"descriptor = {descriptor!r}\n\n\ndef run(input, options):\n    yield {{}}\n"
    engine.add(name, text.encode(), accept=bool)


def construction(sentence: str, song: str = "Yes", flow: str = "play") -> Construction:
    call = Call(flow=flow, params={"song": song})
    found = learn(sentence, call, PARAMETERS, thread="T", now_ms=7)
    assert found is not None
    return found


@pytest.fixture
def constructions(engine: Engine) -> Constructions:
    add_flow(engine, "play")
    return Constructions(engine.store)


def test_what_was_added_is_read_by_the_next_process(
    engine: Engine, constructions: Constructions
) -> None:
    """A construction is on disk with its pack, and one that is covered is not added again."""
    assert constructions.add("music", construction("play Yes"))
    assert not constructions.add("music", construction("play Abba", "Abba"))
    [found] = Constructions(engine.store).all()
    assert (found.pack, found.active, found.construction.sentence) == ("music", True, "play Yes")


def test_several_processes_lose_nothing(engine: Engine, constructions: Constructions) -> None:
    """Constructions that are added at the same time are all kept, merged into one."""
    sentences = [f"{'very ' * number}loud play Yes" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda text: Constructions(engine.store).add("", construction(text)), sentences
            )
        )
    [found] = constructions.all()
    phrases = found.construction.parts[0]
    assert isinstance(phrases, Phrases)
    assert sorted(phrases.texts, key=len) == [text.removesuffix(" Yes") for text in sentences]


def test_changed_parameters_silence_a_construction(
    engine: Engine, constructions: Constructions
) -> None:
    """A construction of an older schema, a disabled or a removed flow is inactive; `prune` removes
    it and no other.
    """
    add_flow(engine, "stop")
    constructions.add("", construction("play Yes"))
    constructions.add("", construction("stop Yes", flow="stop"))
    add_flow(engine, "play", {"type": "object", "properties": {}})
    assert [one.active for one in constructions.all()] == [False, True]
    assert [one.flow for one in constructions.prune()] == ["play"]
    engine.registry.set_enabled("stop", False)
    assert [one.active for one in constructions.all()] == [False]


def test_one_is_found_by_the_beginning_of_its_id(constructions: Constructions) -> None:
    """An unknown and an empty id are refused; a unique beginning is enough."""
    constructions.add("", construction("play Yes"))
    [found] = constructions.all()
    assert constructions.remove(found.construction.id[:4]) == found.construction
    for id in (found.construction.id, "", "zz"):
        with pytest.raises(NotFoundError, match="constructions list"):
            constructions.find(id)


def test_a_damaged_file_hides_no_other(engine: Engine, constructions: Constructions) -> None:
    """A torn line is named with its place and is never overwritten."""
    constructions.add("a", construction("play Yes"))
    constructions.add("b", construction("play Yes"))
    path = engine.store.root / "constructions" / "a.jsonl"
    damaged = path.read_bytes()[:-20] + b"\n"
    path.write_bytes(damaged)
    assert [one.pack for one in constructions.all()] == ["b"]
    assert [problem.partition(": ")[0] for problem in constructions.problems()] == [f"{path}:1"]
    with pytest.raises(DamagedError, match="correct or delete this line"):
        constructions.add("a", construction("put on Yes"))
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("pack", ["../../outside", "/etc/x", "a/b", "..", "\x00", "UPPER"])
def test_a_pack_is_no_path(
    engine: Engine, constructions: Constructions, tmp_path: Path, pack: str
) -> None:
    """A pack whose name is no plain word writes into the directory of constructions only."""
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    constructions.add(pack, construction("play Yes"))
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.parent for path in new} == {engine.store.root / "constructions"}
