"""Money, tokens, time and the number of agents are limits that hold, and none of them is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import granted
from testbed.steering import finish, settle, written
from uncaged_bundles.authoring import END, START, Role, Workflow
from uncaged_bundles.build import build_workflow
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, RunOptions

pytestmark = pytest.mark.slow

WRITER = Role(
    name="writer",
    description="Writes.",
    system_prompt="Write.",
    extract_prompt="What was written.",
    schema={"type": "object", "properties": {"status": {"enum": ["more", "done"]}}, "required": ["status"]},
)
TALK = Workflow(
    name="talk", description="Goes on until done.", roles=[WRITER], moderator={START: "writer", "writer": {"more": "writer", "done": END}}
)


def talk(engine: Engine, tmp_path: Path, *usages: str, **limits: float) -> ThreadId:
    """Start a thread whose agent says `more` once for each usage, and then `done`."""
    script = tmp_path / "answers.yaml"
    lines = [f"- {{role: writer, meta: {{status: more}}, usage: {usage}}}" for usage in usages]
    script.write_text("\n".join([*lines, "- {role: writer, meta: {status: done}}"]), "utf-8")
    granted(engine.store, build_workflow(TALK))
    options = RunOptions(agents={"": f"scripted:{script}"}, **limits)  # type: ignore[arg-type]  # the limits, by name
    return engine.run("talk", prompt="", options=options)


CHEAP = "{inputTokens: 100, outputTokens: 50, cost: 0.6}"


def test_a_limit_of_money_stops_before_the_next_role_and_a_higher_one_goes_on(engine: Engine, tmp_path: Path) -> None:
    """What was spent counts on, the raised limit is on disk, and nothing is asked twice."""
    thread = talk(engine, tmp_path, CHEAP, CHEAP, CHEAP, max_cost=1.0)
    assert settle(engine, thread) == {"status": "limit", "message": "the limit of $1 is reached", "steps": 2}
    with pytest.raises(RefusedError, match="resume it with --max-cost above 1"):
        engine.resume(thread)
    engine.resume(thread, options=RunOptions(max_cost=10))
    finish(engine, thread)
    view = engine.thread(thread)
    assert (round(view.spent.cost, 6), view.spent.tokens) == (1.8, 450)
    assert view.summary.spent == view.spent
    assert engine.verify(thread).ok


def test_a_limit_of_tokens(engine: Engine, tmp_path: Path) -> None:
    """Tokens in and out are counted together."""
    thread = talk(engine, tmp_path, CHEAP, CHEAP, max_tokens=150)
    assert settle(engine, thread)["message"] == "the limit of 150 tokens is reached"


def test_a_limit_of_time_stops_what_is_under_way(engine: Engine, tmp_path: Path) -> None:
    """The agent in flight is stopped; the void says that a limit did it, and the bundle never sees it."""
    script = tmp_path / "answers.yaml"
    script.write_text("- {role: writer, meta: {status: done}, delay_s: 600}\n", "utf-8")
    granted(engine.store, build_workflow(TALK))
    thread = engine.run("talk", prompt="", options=RunOptions(agents={"": f"scripted:{script}"}, max_seconds=3))
    assert settle(engine, thread)["status"] == "limit"
    assert [record["void"] for record in written(engine, thread) if "void" in record] == ["limit"]
    with pytest.raises(RefusedError, match=r"resume it with --max-time above 3s"):
        engine.resume(thread)


def test_a_fork_tells_inherited_from_new(engine: Engine, tmp_path: Path) -> None:
    """What the source spent is shown, and is not spent again."""
    thread = talk(engine, tmp_path, CHEAP, CHEAP)
    finish(engine, thread)
    fork = engine.fork(thread, cut=Cut(at=1))
    finish(engine, fork)
    view = engine.thread(fork)
    assert (view.inherited_spent.cost, round(view.spent.cost, 6)) == (0.6, 0.6)


def test_a_price_that_nobody_knows_is_not_nought(engine: Engine, tmp_path: Path) -> None:
    """The sum says that something is missing from it."""
    thread = talk(engine, tmp_path, "{inputTokens: 10, outputTokens: 1, model: nobody-knows}")
    finish(engine, thread)
    assert engine.thread(thread).spent.unpriced


def test_an_estimate_is_what_past_threads_took(engine: Engine, tmp_path: Path) -> None:
    """Number, median and worst of the present version's threads."""
    for count in (1, 2, 3):
        finish(engine, talk(engine, tmp_path, *[CHEAP] * count))
    found = engine.estimate("talk")
    assert found.n == 3
    assert found.cost is not None
    assert (round(found.cost.median, 6), round(found.cost.worst, 6)) == (1.2, 1.8)
    assert found.steps is not None
    assert (found.steps.median, found.steps.worst) == (3, 4)
