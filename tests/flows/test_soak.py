"""The soak test's controls: an engine without one of its safeguards, which the harness must report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("control", "violation"),
    [
        pytest.param("flush", "flush: ", marks=pytest.mark.needs("strace")),
        ("intent", "intent: request "),
        ("lock", "lock: request "),
        ("ask", "ask: "),
    ],
)
def test_a_missing_safeguard_is_reported(control: str, violation: str) -> None:
    """Threads under random kills break a promise when the engine lacks its safeguard, and the harness says which."""
    command = [sys.executable, "-m", "tests.soak", "--minutes", "1.5", "--seed", "2", "--control", control]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert f"VIOLATION {violation}" in done.stderr
