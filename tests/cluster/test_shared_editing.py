"""Flows of a shared store that are edited, tried, listed as tools, and called from any machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testbed.bundles import thread_id
from testbed.kitchens import TIME, Kitchen, Machine, opened
from uncaged_bundles.errors import RefusedError
from uncaged_cli.editing import FlowEdit, edited_bundle
from uncaged_dispatcher.constructions.construction import Construction, Phrases
from uncaged_dispatcher.constructions.kept import Constructions, FlowDigests

EXAMPLE = {"sentence": "what is the hour", "params": {}, "expect": {"contains": "it is late"}}


def accept(_widened: tuple[str, ...]) -> bool:
    return True


@pytest.fixture
def hello(machine: Machine, tmp_path: Path) -> None:
    """A flow that is built from a script."""
    (tmp_path / "hello.sh").write_text("echo hello\n")
    machine.said("first", ["add", "hello", str(tmp_path / "hello.sh"), "--accept"])


@pytest.mark.usefixtures("hello")
def test_an_edited_flow_is_a_version_for_all(kitchen: Kitchen, machine: Machine) -> None:
    """New permissions are asked for, for all workers. An edit of a version that another machine
    has replaced meanwhile is refused, and the other's stays.
    """
    machine.said("second", ["edit", "hello", "--pattern", "say hello"])
    assert "hello" in machine.said("first", ["explain", "say hello"])
    said = machine.said("first", ["edit", "hello", "--allow-host", "example.com"], code=1)
    assert "on every worker of" in said and "--accept" in said
    with opened(kitchen.address, kitchen.directory / "first") as engine:
        bundle = engine.bundle("hello")
        mine = edited_bundle(bundle, "hello", FlowEdit(description="mine")).source
        machine.said("second", ["edit", "hello", "--description", "theirs"])
        with pytest.raises(RefusedError, match="was changed meanwhile"):
            engine.add("hello", mine, accept=accept, follows=bundle.hash)
        assert engine.bundle("hello").descriptor.description == "theirs"
        with pytest.raises(RefusedError, match="already exists"):
            engine.add("hello", mine, accept=accept, follows=None)


@pytest.mark.usefixtures("hello")
def test_a_construction_becomes_a_pattern_for_all(kitchen: Kitchen, machine: Machine) -> None:
    """It is deleted in the store with its promotion; what `patterns` writes is read elsewhere."""
    with opened(kitchen.address, kitchen.directory / "first") as engine:
        engine.read_sentences()
        one = Construction(
            id="of-hello",
            flow="hello",
            parts=(Phrases(texts=("greet me",)),),
            schema=FlowDigests(engine.store).of("hello") or "",
            thread=thread_id(7),
            sentence="greet me",
            learned_ms=1,
        )
        Constructions(engine.store).add("", one)
        engine.keep_sentences()
    assert "greet me" in machine.said("second", ["patterns", "suggest", "hello"])
    assert "has the pattern" in machine.said("second", ["constructions", "promote", "of-hello"])
    assert "nothing was learned" in machine.said("first", ["constructions", "list"])
    assert "hello" in machine.said("first", ["explain", "greet me"])
    said = json.loads(machine.said("first", ["patterns", "suggest", "hello", "--write", "--json"]))
    assert said["hash"] == json.loads(machine.said("second", ["show", "hello", "--json"]))["hash"]


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_examples_and_calls_run_on_workers(kitchen: Kitchen, machine: Machine) -> None:
    """An example is a thread of the store, and a call is a request of its conversation. `random`
    and `tools` know its flows alone.
    """
    tested = TIME.replace(b"'kind'", f"'examples': {[EXAMPLE]!r}, 'kind'".encode(), 1)
    assert tested != TIME
    with opened(kitchen.address, kitchen.directory / "first") as engine:
        engine.add("tested", tested.replace(b"'clock'", b"'tested'"), accept=accept)
    said = machine.said("second", ["test", "tested"])
    assert "passed" in said and "1 of 1 examples" in said
    assert "tested" in machine.said("first", ["threads", "-n", "1"])
    machine.said("first", ["conversation", "new", "calls"])
    assert "it is late" in machine.said("first", ["action", "clock", "--conversation", "calls"])
    assert "it is late" in machine.said("second", ["conversation", "show", "calls"])
    names = [one["flow"] for one in json.loads(machine.said("second", ["tools", "--json"]))]
    assert "tested" in names and "list-files" not in names
    found = json.loads(machine.said("second", ["random", "--json"]))
    assert found["flow"] in names
    machine.said("first", ["remove", "tested"])
