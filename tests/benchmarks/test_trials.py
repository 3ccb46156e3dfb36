"""Captures and fixes through the command line: a tenth of both measurements, and their checkers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.broken_flows.attempt import attempt as fix
from benchmarks.broken_flows.flows import QUICK as BROKEN
from benchmarks.captured_tasks.attempt import attempt as capture
from benchmarks.captured_tasks.tasks import sampled
from benchmarks.outside.results import ResultFile

pytestmark = pytest.mark.slow
TASKS = {rule.name: rule for rule in sampled(quick=True)}


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", TASKS)
def test_a_captured_task_is_right_in_other_worlds(name: str, tmp_path: Path) -> None:
    """The first run does the task; the flow made of it does the others without a model."""
    tmp_path.chmod(0o755)
    found = capture(TASKS[name], 0, tmp_path)
    assert (found.first, found.refused, found.wrong, found.requests) == ("", "", ("", ""), 0)
    assert found.right


@pytest.mark.parametrize("name", BROKEN)
def test_a_fix_is_right_or_there_is_none(name: str, tmp_path: Path) -> None:
    """The case is broken as it should be, and nothing wrong is proposed."""
    tmp_path.chmod(0o755)
    found = fix(name, 0, tmp_path, "none", quick=True)
    assert found.verdict in ("right", "honest"), found.document()


def test_a_checker_refuses_a_plausible_recipe(tmp_path: Path) -> None:
    """A recipe that runs with success and counts columns instead is wrong."""
    tmp_path.chmod(0o755)
    found = fix("csv-column-1", 0, tmp_path, "wrong-by-hand", quick=True)
    assert found.verdict == "wrong", found.document()


def test_results_continue_an_interrupted_run(tmp_path: Path) -> None:
    """The last result of a case counts, and a torn last line is dropped."""
    path = tmp_path / "results.jsonl"
    for verdict in ("wrong", "right"):
        ResultFile(path).add({"name": "a", "verdict": verdict})
    with path.open("a") as file:
        file.write(json.dumps({"name": "b"})[:5])
    assert ResultFile(path).found == {"a": {"name": "a", "verdict": "right"}}
