"""Figures of an agent's trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .test_main import run


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_a_trace_adds_one_flush_to_a_role_step(tmp_path: Path) -> None:
    """Fifty tool calls of a real worker's agent, counted by strace against none."""
    done = run("--quick", "--json", "trace", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    [flushes, cpu] = json.loads(done.stdout)["rows"]
    assert (flushes["ok"], flushes["words"]) == (True, "")
    assert flushes["values"] == [1.0]
    assert len(cpu["values"]) == 3
