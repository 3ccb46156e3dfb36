"""Imports into a shared store: threads and flows from files that may be hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from psycopg.sql import SQL, Identifier
from testbed.archives import write_archive
from testbed.bundles import source, thread_id
from testbed.journals import NOW_MS, Script
from testbed.kitchens import TIME, Kitchen, Machine, opened
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import bundle_hash
from uncaged_engine.journal.origin import ThreadOrigin
from uncaged_engine.threads.transfer import import_thread, read_export

CALLS = {"flow": {"name": "clock", "prompt": "", "params": {}}}
PARENT = source(
    "parent",
    f"""
    yield {CALLS!r}
    return {{"success": True, "message": "called"}}
""",
    policy={"flow": {"names": ["clock"]}},
)
START = {
    "type": "start",
    "config": {"variables": [{"name": "n", "type": "integer", "value": "1", "description": "N."}]},
}
CALL = {
    "type": "apiCall",
    "config": {"url": "https://api.example.com/x", "headers": [{"key": "X", "value": "y"}]},
}


def counts(kitchen: Kitchen) -> list[int]:
    """Return how many threads, lines, bundles, blobs and markers the store has."""
    tables = ("threads", "thread_lines", "bundles", "blobs", "removed_threads")
    statement = SQL("SELECT 1 FROM {}")
    return [kitchen.rows.execute(statement.format(Identifier(one))).rowcount for one in tables]


def clock(number: int) -> Script:
    return Script.begun(bundle_hash(TIME), thread_id(number), name="clock")


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_an_imported_thread_goes_on_after_a_yes(machine: Machine, tmp_path: Path) -> None:
    """All machines see where it comes from, and none drives it before a person has accepted what
    it brings; then a worker does. One that is there is refused.
    """
    file = write_archive(tmp_path / "a.zst", TIME, clock(50).data)
    id = thread_id(50)
    assert f"imported {id}" in machine.said("first", ["import", str(file)])
    assert "in this store already" in machine.said("second", ["import", str(file)], code=1)
    [listed] = json.loads(machine.said("second", ["threads", "--json"]))
    assert (listed["threadId"], listed["imported"]) == (id, True)
    assert "--accept" in machine.said("second", ["resume", id], code=1)
    assert "proved" in machine.said("second", ["verify", id])
    assert "it is late" in machine.said("second", ["resume", id, "--accept"])
    exported = tmp_path / "again.zst"
    machine.said("first", ["export", id, str(exported)])
    machine.said("first", ["thread", "rm", id])
    machine.said("second", ["import", str(exported), "--json"])
    assert "completed" in machine.said("first", ["threads"])
    machine.said("first", ["thread", "rm", id])


def test_a_forged_export_leaves_nothing(kitchen: Kitchen, machine: Machine, tmp_path: Path) -> None:
    """Neither a thread nor a bundle, blob or marker."""
    before = counts(kitchen)
    other = Script.begun(bundle_hash(PARENT), thread_id(51), name="parent")
    for bundle, journal, words in (
        (TIME, clock(51).data.replace(b"clock", b"CLOCK"), "does not hold at line 1"),
        (TIME, other.data, "another bundle"),
        (b"def run(", clock(51).data, ""),
    ):
        file = write_archive(tmp_path / "a.zst", bundle, journal)
        assert words in machine.said("first", ["import", str(file)], code=1)
    assert "no file" in machine.said("first", ["import", str(tmp_path / "none.zst")], code=5)
    assert counts(kitchen) == before


def test_an_imported_parent_asks_for_children_that_ran_elsewhere(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    """What the open effect's child did is not known here, so every machine sees `unknown`, and a
    resume does not start it again.
    """
    script = Script.begun(bundle_hash(PARENT), thread_id(52), name="parent").intent(1, CALLS)
    file = write_archive(tmp_path / "a.zst", PARENT, script.data)
    with (
        opened(kitchen.address, kitchen.directory / "first") as first,
        opened(kitchen.address, kitchen.directory / "second") as second,
    ):
        first.add("parent", PARENT, accept=lambda _: True)
        thread = import_thread(first, file, now_ms=NOW_MS)
        assert second.thread(thread).summary.status == "unknown"
        with pytest.raises(RefusedError, match="--redo"):
            second.resume(thread, accept=lambda _: True)
        second.remove_thread(thread)
        first.registry.remove("parent")


def test_of_two_imports_of_a_thread_one_is_refused(kitchen: Kitchen, tmp_path: Path) -> None:
    """Also of two at the same moment, of which both saw that it is not there."""
    files = read_export(write_archive(tmp_path / "a.zst", TIME, clock(53).data))
    origin = ThreadOrigin(bytes=len(files.journal), steps=0, importedMs=NOW_MS)
    with (
        opened(kitchen.address, kitchen.directory / "first") as first,
        opened(kitchen.address, kitchen.directory / "second") as second,
    ):
        first.take_in(files, origin)
        with pytest.raises(RefusedError, match="has a thread"):
            second.take_in(files, origin)
        second.remove_thread(files.thread_id)


def test_an_imported_flow_is_granted_by_a_person(machine: Machine, tmp_path: Path) -> None:
    """For all workers; the flow's values that the export omitted disable it, and it replaces no
    flow.
    """
    recipe = {"name": "Add One", "description": "Adds one.", "active": False}
    file = tmp_path / "one.json"
    file.write_text(json.dumps({**recipe, "steps": [START, CALL]}))
    words = ["import", str(file), "--name", "add-one"]
    said = machine.said("first", words, code=1)
    assert "on every worker of" in said and "is not granted" in said
    assert "add-one@" in machine.said("first", [*words, "--accept"])
    listed = json.loads(machine.said("second", ["list", "--json"]))["flows"]
    assert [one["enabled"] for one in listed if one["flow"] == "add-one"] == [False]
    assert "already exists" in machine.said("second", [*words, "--accept"], code=1)
    machine.said("second", ["remove", "add-one"])
