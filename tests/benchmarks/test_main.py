"""The command itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--directory", str(directory), *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_counted_figures_are_met(tmp_path: Path) -> None:
    """Flushes and bytes do not depend on the machine, so their verdict is the same everywhere."""
    done = run("--quick", "--json", "flushes", "sizes", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["title"]: row for row in json.loads(done.stdout)["rows"]}
    assert len(rows) == 3
    assert [row["words"] for row in rows.values() if row["ok"] is not True] == []


@pytest.mark.slow
def test_a_bundle_has_one_worker(tmp_path: Path) -> None:
    """However many children run at once, and each of them ends."""
    done = run("--quick", "--json", "children", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert (row["ok"], row["words"]) == (True, "")
    assert row["baseline"].startswith("300 of 300 children finished")


@pytest.mark.slow
def test_a_measured_figure_prints_a_table(tmp_path: Path) -> None:
    """A real worker is measured against a bare loop, and nothing of it stays behind."""
    done = run("--quick", "durable", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "durable step, one thread, on disk" in done.stdout
    assert "Quick" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_unknown_figure_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """A slip of the keyboard costs no four minutes."""
    done = run("durabel", directory=tmp_path)
    assert done.returncode == 2
    assert "no figure durabel; there are " in done.stderr
