"""Measurements behind the figures of agents' turns."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

import pytest
from uncaged_engine.journal import chain, lines

from benchmarks.laboratory import Laboratory
from benchmarks.turns import agents, lasted


def test_a_thread_lasts_from_its_first_line_to_its_end(tmp_path: Path) -> None:
    """A thread without an end has no duration."""
    digest = b""
    path = tmp_path / "journal"
    for body in (
        lines.start({"name": "x"}, 100),
        lines.step(1, {"outcome": 1}, 200),
        lines.end("completed", {}, 350),
    ):
        line, digest = chain.seal(digest, body)
        with path.open("ab") as file:
            file.write(line)
    assert lasted(path) == (100, 350)
    path.write_bytes(path.read_bytes().rpartition(b'{"end"')[0])
    with pytest.raises(RuntimeError, match="has no end"):
        lasted(path)


@pytest.mark.slow
def test_the_agent_of_the_figures_is_found_like_any_other(tmp_path: Path) -> None:
    """Only inside, and nothing stays behind in this process."""
    before = (list(sys.path), os.environ.get("PYTHONPATH"))
    laboratory = Laboratory(directory=tmp_path)
    with agents(laboratory, seconds=0):
        [point] = importlib.metadata.entry_points(group="uncaged_workflow.agents", name="bench")
        assert point.load().name == "bench"
    assert (list(sys.path), os.environ.get("PYTHONPATH")) == before
