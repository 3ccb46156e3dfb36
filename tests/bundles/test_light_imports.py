from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = """
ids names shapes policy contract errors
validation.modules validation.findings validation.literal validation.purity validation.access validation.schemas validation.validate
storage.files storage.store storage.snapshot storage.registry
"""
HEAVY = {
    "pydantic",
    "jsonschema",
    "yaml",
    "anthropic",
    "rich",
    "zstandard",
    "asyncio",
    "hashlib",
    "difflib",
    "importlib.metadata",
}


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    """Importing every module that a command line or a worker starts with loads no library but
    xxhash.
    """
    modules = ", ".join(f"uncaged_bundles.{name}" for name in LIGHT.split())
    code = f"import sys; before = set(sys.modules); import {modules}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "uncaged_bundles.storage.registry" in loaded
    assert not HEAVY & loaded
