"""Objects in a notebook."""

from __future__ import annotations

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.notebook import COLUMNS
from uncaged_engine.api import Engine
from uncaged_engine.state.observe import ThreadSummary

HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 10_000_000


def test_threads_flows_and_bundles_show_themselves(engine: Engine) -> None:
    """Each is a small table without script, whatever its texts hold."""
    source = b"""
descriptor = {"contract": 1, "name": "tiny", "description": "A <b>small</b> flow.", "kind": "task", "policy": {"null": {}}}


def run(input, options):
    yield {"null": {}}
"""
    added = engine.add("tiny", source, accept=bool)
    flow = engine.registry.flow("tiny")
    assert flow is not None
    thread = ThreadSummary(
        thread_id=ThreadId("01HX5WBE000000000000000000"),
        hash=added.hash,
        name="<b>",
        status="failed",
        steps=2,
        started_ms=1000,
        updated_ms=2500,
        message=HOSTILE,
    )
    for shown, part in (
        (flow._repr_html_(), added.hash),
        (engine.bundle("tiny")._repr_html_(), "A &lt;b&gt;small&lt;/b&gt; flow."),
        (thread._repr_html_(), "1.5 s"),
    ):
        assert part in shown
        assert "<script" not in shown and "<b>small" not in shown and "\u202e" not in shown
        assert len(shown) < 1000 + 5 * COLUMNS
