"""Start of a sentence's worker before the rest of the command is loaded."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from testbed.sentences import add_flow, parameters
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.index.rule_index import RuleIndex
from uncaged_engine.api import Engine

READ = """
import sys
from uncaged_dispatcher.conversations.early import rouse_sentence
print(type(rouse_sentence(sys.argv[1])).__name__, *sys.modules)
"""
LATE = {
    *("hashlib", "dataclasses", "inspect", "decimal", "yaml", "importlib.metadata"),
    *("uncaged_engine.effect_kinds", "uncaged_engine.journal.file", "uncaged_engine.api"),
    *("uncaged_dispatcher.index.compiling", "uncaged_dispatcher.readings.interpreter"),
}


def _roused(store: Store, sentence: str) -> tuple[str, set[str]]:
    """Return what a process gets that rouses the worker of a sentence, by its type, and the
    process's modules.
    """
    done = subprocess.run(
        [sys.executable, "-c", READ, sentence],
        env={**os.environ, "UNCAGED_WORKFLOW_HOME": str(store.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    found, *modules = done.stdout.split()
    return found, set(modules)


@pytest.mark.slow
def test_a_worker_waits_for_few_modules(tmp_path: Path) -> None:
    """A sentence is read with an index that is up to date before anything is loaded that only the
    index, the thread or a translation needs.
    """
    store = Store.open(tmp_path / "store")
    store.registry_path.write_text("workflows: {}\n")
    (found, first), (again, second) = (
        _roused(store, "no flow reads this sentence") for _ in range(2)
    )
    assert (found, again) == ("NoneType", "NoneType")
    # the control: the first sentence fills the index
    assert "uncaged_dispatcher.index.compiling" in first
    assert "uncaged_dispatcher.readings.reading" in second
    assert not LATE & second


@pytest.mark.slow
def test_the_words_of_one_flow_start_its_worker(engine: Engine) -> None:
    """Where the words name one flow, its worker starts before any reader of sentences is loaded."""
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    index = RuleIndex(engine)
    index.refresh()
    index.close()
    found, loaded = _roused(engine.store, "say hello to Ann")
    assert found == "Launching"
    assert "uncaged_dispatcher.index.guess" in loaded
    assert (
        not {"uncaged_dispatcher.readings.reading", "uncaged_dispatcher.index.rule_index"} & loaded
    )
    assert not LATE & loaded


@pytest.mark.slow
def test_a_marked_flow_s_worker_waits_for_the_yes(engine: Engine) -> None:
    """Where the words are those of two flows, the sentence is read; the worker of the one that
    reads it best starts, unless a person marked it.
    """
    schema = parameters(x={}, n={"type": "integer"})
    for verb, flows in (("wipe", ("wipe", "wash")), ("mop", ("mop", "scrub"))):
        for flow, rest in zip(flows, ("", " $(n:number) times"), strict=True):
            add_flow(engine, flow, f"{verb} the $(x){rest}", schema=schema)
    assert _roused(engine.store, "wipe the table 3 times")[0] == "Launching"
    for flow in ("mop", "scrub"):  # no worker of theirs listens
        engine.registry.set_confirm(flow, True)
    assert _roused(engine.store, "mop the floor 3 times")[0] == "NoneType"
    engine.registry.set_confirm("scrub", False)
    assert _roused(engine.store, "mop the floor 3 times")[0] == "Launching"


@pytest.mark.slow
def test_a_damaged_index_starts_no_worker(engine: Engine) -> None:
    """The sentence itself is read after that, and reports what is wrong."""
    add_flow(engine, "greet", "say hello to $(x)", schema=parameters("x", x={}))
    assert _roused(engine.store, "say hello to Ann")[0] == "Launching"
    path = engine.store.root / "dispatcher" / "rules.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE posting")
    assert _roused(engine.store, "say hello to Bob")[0] == "NoneType"
    assert not path.exists()
