"""Start of a sentence's worker before the rest of the command is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.sentences import add_flow, parameters
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.index.rule_index import RuleIndex
from uncaged_engine.api import Engine

READ = """
import sys
from uncaged_dispatcher.conversations.early import rouse_sentence
assert (rouse_sentence(sys.argv[1]) is None) == (len(sys.argv) == 2)
print(*sys.modules)
"""
LATE = {
    *("hashlib", "dataclasses", "inspect", "decimal", "yaml", "importlib.metadata"),
    *("uncaged_engine.effect_kinds", "uncaged_engine.journal.file", "uncaged_engine.api"),
    *("uncaged_dispatcher.index.compiling", "uncaged_dispatcher.readings.interpreter"),
}


def _modules(store: Store, *words: str) -> set[str]:
    """Return the modules of a process that rouses the worker of a sentence. words: the sentence; a
    second word says that there is one.
    """
    done = subprocess.run(
        [sys.executable, "-c", READ, *words],
        env={**os.environ, "UNCAGED_WORKFLOW_HOME": str(store.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.slow
def test_a_worker_waits_for_few_modules(tmp_path: Path) -> None:
    """A sentence is read with an index that is up to date before anything is loaded that only the
    index, the thread or a translation needs.
    """
    store = Store.open(tmp_path / "store")
    store.registry_path.write_text("workflows: {}\n")
    first, second = (_modules(store, "no flow reads this sentence") for _ in range(2))
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
    loaded = _modules(engine.store, "say hello to Ann", "worker")
    assert "uncaged_dispatcher.index.guess" in loaded
    assert (
        not {"uncaged_dispatcher.readings.reading", "uncaged_dispatcher.index.rule_index"} & loaded
    )
    assert not LATE & loaded
