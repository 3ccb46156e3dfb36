"""Start of a sentence's worker before the rest of the command is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_bundles.storage.store import Store

READ = """
import sys
from uncaged_dispatcher.conversations.early import rouse_sentence
assert rouse_sentence("no flow reads this sentence") is None
print(*sys.modules)
"""
LATE = {
    *("hashlib", "dataclasses", "inspect", "decimal", "yaml", "importlib.metadata"),
    *("uncaged_engine.effect_kinds", "uncaged_engine.journal.file", "uncaged_engine.api"),
    *("uncaged_dispatcher.index.compiling", "uncaged_dispatcher.readings.interpreter"),
}


@pytest.mark.slow
def test_a_worker_waits_for_few_modules(tmp_path: Path) -> None:
    """A sentence is read with an index that is up to date before anything is loaded that only the
    index, the thread or a translation needs.
    """
    store = Store.open(tmp_path / "store")
    store.registry_path.write_text("workflows: {}\n")
    environment = {**os.environ, "UNCAGED_WORKFLOW_HOME": str(store.root)}
    first, second = (
        set(
            subprocess.run(
                [sys.executable, "-c", READ],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
        )
        for _ in range(2)
    )
    # the control: the first sentence fills the index
    assert "uncaged_dispatcher.index.compiling" in first
    assert "uncaged_dispatcher.readings.reading" in second
    assert not LATE & second
