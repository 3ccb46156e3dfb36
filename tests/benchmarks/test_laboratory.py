"""Figures read from a journal."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.journal import chain, lines

from benchmarks.laboratory import Timeline, step_lines, timeline

BUNDLE = BundleHash("C9NMV6V2TQT81")
THREAD = ThreadId("01HX5WBE0000000000000000AA")


def test_a_step_takes_what_lies_between_two_ends() -> None:
    """Average over a window: from the end of the step before it to the end of its last step."""
    times = Timeline(finished_ms=(100, 110, 130, 190))
    assert times.per_step_us(1, 4) == 30_000
    assert times.per_step_us(3, 4) == 60_000


def test_only_finished_steps_count(tmp_path: Path) -> None:
    """Intents and controls are no steps; the time is the one that the worker wrote."""
    digest = chain.seed(BUNDLE, THREAD)
    written = b""
    bodies = [
        lines.start({"name": "x"}, 1),
        lines.intent(1, b"{}", 2),
        lines.step(1, {"outcome": {"timestamp": 9}}, 3),
        lines.control("pause", {}, 4),
        lines.intent(2, b"{}", 5),
    ]
    for body in bodies:
        line, digest = chain.seal(digest, body)
        written += line
    path = tmp_path / "journal"
    path.write_bytes(written)
    assert len(step_lines(path)) == 1
    assert timeline(path) == Timeline(finished_ms=(3,))
