"""Processor time between two steps, from samples taken at other moments."""

from __future__ import annotations

import os
import time
from pathlib import Path

from uncaged_engine.journal import chain, lines

from benchmarks.cputime import Profile, Sample, ends_of_steps, used_ns


def test_a_step_between_two_samples_gets_its_share() -> None:
    """Steps end at 100, 200, 300 and 400; the first 250 bytes took 2,500 ns, the rest 30,000."""
    samples = [
        Sample(journal_bytes=0, cpu_ns=1_000),
        Sample(journal_bytes=250, cpu_ns=3_500),
        Sample(journal_bytes=400, cpu_ns=33_500),
    ]
    profile = Profile(samples=samples, ends=[100, 200, 300, 400])
    assert profile.per_step_us(1, 2) == 1.0
    assert profile.per_step_us(3, 4) == 20.0
    assert profile.per_step_us(1, 4) == (33_500 - 2_000) / 3 / 1000


def test_samples_of_an_unchanged_journal_do_no_harm() -> None:
    """A sandbox that computes for long writes nothing meanwhile."""
    samples = [
        Sample(journal_bytes=size, cpu_ns=used)
        for size, used in ((0, 0), (100, 10), (100, 500), (200, 600))
    ]
    assert Profile(samples=samples, ends=[100, 200]).per_step_us(1, 2) == 0.59


def test_steps_end_where_their_lines_end(tmp_path: Path) -> None:
    """Intents and controls lie between them."""
    step, digest = chain.seal(b"", lines.step(1, {"outcome": 1}, 3))
    control, _ = chain.seal(digest, lines.control("pause", {}, 4))
    path = tmp_path / "journal"
    path.write_bytes(step + control + step)
    assert ends_of_steps(path) == [len(step), len(step + control + step)]


def test_a_process_clock_is_that_of_the_process() -> None:
    """For ourselves it agrees with what Python says of us."""
    before = time.process_time_ns()
    asked = used_ns(os.getpid())
    assert before <= asked <= time.process_time_ns()
