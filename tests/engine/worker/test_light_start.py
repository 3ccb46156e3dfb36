"""Imports of the processes of a start: each library that is left out saves its milliseconds at
every run.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LEFT_OUT = {
    "asyncio",
    "dataclasses",
    "difflib",
    "email",
    "hashlib",
    "importlib.metadata",
    "inspect",
    "logging",
    "shutil",
    "tempfile",
    "yaml",
}
"""In milliseconds of CPU: yaml 12, dataclasses with inspect 5, importlib.metadata with email 20,
shutil with the compressions 3.
"""
STARTS = {
    "before the worker is started": "uncaged_cli.entry, uncaged_engine.worker.client",
    "the worker, until it listens": "uncaged_engine.worker.__main__, uncaged_engine.cells.cell, uncaged_engine.settings.loading, "
    "uncaged_engine.worker.server",
}


@pytest.mark.slow
@pytest.mark.parametrize("modules", STARTS.values(), ids=STARTS)
def test_a_start_imports_no_library_that_it_can_do_without(modules: str) -> None:
    """The path from the shell to the first step goes through these imports one after the other."""
    code = f"import sys; before = set(sys.modules); import {modules}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "uncaged_bundles.records" in loaded
    assert not LEFT_OUT & loaded


@pytest.mark.slow
def test_a_worker_is_started_without_reading_policies() -> None:
    """Policies, rights and hosts are read by the worker and by the command behind it; they cost 4
    ms.
    """
    code = f"import sys; import {STARTS['before the worker is started']}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"uncaged_bundles.policy", "uncaged_bundles.limits", "uncaged_bundles.hosts"} & set(
        done.stdout.split()
    )


@pytest.mark.slow
def test_the_end_of_a_thread_is_reported_without_the_builders() -> None:
    """Only the report of a failure reads a flow's source, for 35 ms of CPU."""
    code = "import sys; import uncaged_cli.display.follow; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "uncaged_engine.threads.ending" in loaded
    assert not {name for name in loaded if name.startswith("uncaged_bundles.builders.recipes")}
