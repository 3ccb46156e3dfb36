"""Benchmark of web pages: a tenth of the pages, and counts that no machine changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pages.collection import COUNT, page_case, template_of
from benchmarks.web_bench import bare_browser
from benchmarks.web_pages import sampled_pages, try_pages

ROOT = Path(__file__).parents[2]


def test_a_page_follows_from_its_number_and_the_seed() -> None:
    """Each page has the same design on all seeds of data, and its person wants something else; the
    sample has as many templates as pages.
    """
    for number in range(COUNT):
        first, again, other = (page_case(number, seed) for seed in (0, 0, 1))
        assert first.html("/") == again.html("/")
        assert first.html("/") != first.html("/", redesign=number)
        assert first.values.keys() == other.values.keys()
        assert any(page_case(number, seed).values != first.values for seed in range(1, 10))
    assert len({template_of(number) for number in sampled_pages()}) == len(sampled_pages())


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_tenth_of_the_pages_is_replayed_on_other_data(tmp_path: Path) -> None:
    """A recording of each page of the sample does its task with other data and values, which the
    page itself confirms.
    """
    with bare_browser() as bare:
        found = bare.run(try_pages(bare.browser, sampled_pages(), [1], tmp_path))
    assert [
        (one.number, template_of(one.number), one.verdict, one.reason, one.acts)
        for one in found
        if one.verdict != "success"
    ] == []
    assert len(found) == COUNT // 10


@pytest.mark.slow
@pytest.mark.needs("chromium")
@pytest.mark.needs("strace")
def test_a_step_of_a_web_flow_is_one_flush(tmp_path: Path) -> None:
    """A step brings its own line to disk and nothing else."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", "--directory"]
    done = subprocess.run(
        [*command, str(tmp_path), "web-flushes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert (row["ok"], row["words"]) == (True, "")
