"""Packs of a shared store, and removals of its documents."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from testbed.kitchens import Kitchen, Machine, opened
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cluster.store import open_store
from uncaged_dispatcher.mcp.servers import McpPacks
from uncaged_dispatcher.readings.pack_management import PackManager
from uncaged_engine.shared_engine import SharedEngine

MEALS = b"""
name: meals
description: Small meals.
flows: [cakes]
rules: '<Start> = something sweet -> { flow: "cakes", params: {} };'
"""
OTHER = MEALS.replace(b"Small", b"Large")


def documents(kitchen: Kitchen) -> dict[str, bytes]:
    """Return the documents of packs that the store has."""
    with closing(open_store(kitchen.address, create=False, is_visible=True)) as store:
        found = {name: store.documents.read(name) for name in store.documents.names()}
    return {
        name: one.data for name, one in found.items() if one is not None and name[:6] == "packs/"
    }


def packs(engine: SharedEngine) -> PackManager:
    engine.read_sentences()
    return PackManager(engine)


@pytest.mark.slow
def test_a_pack_is_registered_disabled_and_removed_for_all(
    kitchen: Kitchen, machine: Machine, tmp_path: Path
) -> None:
    """Each verb changes the store, and the next sentence of any machine follows."""
    file = tmp_path / "meals.yaml"
    file.write_bytes(MEALS)
    assert "is registered, with 1 flow" in machine.said("first", ["pack", "add", str(file)])
    assert "packs" not in [one.name for one in (kitchen.directory / "first").iterdir()]
    listed = json.loads(machine.said("second", ["pack", "list", "--json"]))["packs"]
    assert next(one for one in listed if one["pack"] == "meals")["enabled"]
    assert "cakes" in machine.said("second", ["explain", "something sweet"])
    assert machine.said("second", ["pack", "scan", "--error"]) == "no collisions\n"
    machine.said("second", ["pack", "disable", "meals"])
    assert "(disabled, from person)" in machine.said("first", ["pack", "show", "meals"])
    machine.said("first", ["pack", "enable", "meals"])
    assert documents(kitchen)["packs/states"] == b'"meals": true\n'
    machine.said("second", ["pack", "remove", "meals"])
    assert documents(kitchen) == {"packs/states": b""}
    assert "no pack 'meals'" in machine.said("first", ["pack", "show", "meals"], code=5)
    assert "no pattern reads" in machine.said("first", ["explain", "something sweet"])


def test_a_removed_pack_does_not_come_back(kitchen: Kitchen) -> None:
    """It vanishes from a process that lives on, such as a server, and its end does not send it."""
    with (
        opened(kitchen.address, kitchen.directory / "first") as first,
        opened(kitchen.address, kitchen.directory / "second") as second,
    ):
        packs(first).add(MEALS, "meals")
        first.keep_sentences()
        assert packs(second).report("meals").pack.description == "Small meals."
        packs(first).remove("meals")
        first.keep_sentences()
        with pytest.raises(NotFoundError, match="no pack 'meals'"):
            packs(second).report("meals")
    assert "packs/meals.yaml" not in documents(kitchen)


def test_of_two_changes_of_a_pack_the_first_is_kept(kitchen: Kitchen) -> None:
    """The second machine's change is refused whole, and its copy is that of the store again: a
    removal does not take another machine's new version, and a version does not come after a
    removal. Two removals are one.
    """
    with (
        opened(kitchen.address, kitchen.directory / "first") as first,
        opened(kitchen.address, kitchen.directory / "second") as second,
    ):
        packs(first).add(MEALS, "meals")
        packs(first).set_enabled("meals", enabled=False)
        first.keep_sentences()
        at_first, at_second = packs(first), packs(second)
        at_first.add(OTHER, "meals")
        first.keep_sentences()
        at_second.remove("meals")
        with pytest.raises(RefusedError, match=r"packs/meals\.yaml, packs/states at the same time"):
            second.keep_sentences()
        assert at_second.report("meals").pack.description == "Large meals."
        assert documents(kitchen)["packs/meals.yaml"] == OTHER

        at_first, at_second = packs(first), packs(second)
        at_first.set_enabled("meals", enabled=True)
        first.keep_sentences()
        at_second.add(MEALS.replace(b"meals", b"soups"), "soups")
        at_second.set_enabled("meals", enabled=False)
        with pytest.raises(RefusedError, match="another machine changed packs/states at"):
            second.keep_sentences()
        assert "soups" not in at_second.names()
        assert "packs/soups.yaml" not in documents(kitchen)

        at_first, at_second = packs(first), packs(second)
        at_first.remove("meals")
        first.keep_sentences()
        at_second.add(MEALS, "meals")
        with pytest.raises(RefusedError, match=r"another machine changed packs/meals\.yaml"):
            second.keep_sentences()

        packs(first).add(MEALS, "meals")
        first.keep_sentences()
        at_first, at_second = packs(first), packs(second)
        at_first.remove("meals")
        first.keep_sentences()
        at_second.remove("meals")
        second.keep_sentences()
    assert "packs/meals.yaml" not in documents(kitchen)


def test_a_directory_that_was_deleted_removes_no_document(kitchen: Kitchen) -> None:
    """A person who deletes a machine's directory means that machine."""
    with opened(kitchen.address, kitchen.directory / "first") as engine:
        packs(engine).add(MEALS, "meals")
        engine.keep_sentences()
        shutil.rmtree(engine.store.documents)
        engine.keep_sentences()
        assert "packs/meals.yaml" in documents(kitchen)
        engine.store.documents.mkdir()
    with opened(kitchen.address, kitchen.directory / "second") as engine:
        packs(engine).remove("meals")
        engine.keep_sentences()


def test_servers_of_one_machine_are_no_packs_of_all(kitchen: Kitchen, tmp_path: Path) -> None:
    """A list of the packs of a shared store starts no MCP server of this machine's config.yaml."""
    home = tmp_path / "home"
    home.mkdir()
    started = tmp_path / "started"
    server = {"command": "touch", "args": [str(started)]}
    (home / "config.yaml").write_text(json.dumps({"mcpServers": {"weather": server}}))
    with opened(kitchen.address, home) as engine:
        assert "weather" not in [one.pack.name for one in packs(engine).reports()[0]]
        assert not McpPacks(engine).bring_in()
    assert not started.exists()


def test_a_pack_makes_no_store(
    kitchen: Kitchen, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A misspelt address of `pack add` is an error, although `add` makes a store."""
    file = tmp_path / "meals.yaml"
    file.write_bytes(MEALS)
    monkeypatch.setenv(STORE_VARIABLE, f"{kitchen.address}_misspelt")
    assert "no store" in machine.said("first", ["pack", "add", str(file)], code=5)
    assert "no store" in machine.said("first", ["pack", "list"], code=5)
