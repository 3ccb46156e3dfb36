"""Money, tokens, time and the number of agents are limits that hold, and none of them is a
failure.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from testbed.bundles import granted, source
from testbed.modelserver import ModelServer, says, serving
from testbed.processes import end_workers
from testbed.steering import finish, settle, wait_for, written
from uncaged_bundles.authoring import END, START, Role, Workflow
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, RunOptions

pytestmark = pytest.mark.slow

WRITER = Role(
    name="writer",
    description="Writes.",
    system_prompt="Write.",
    extract_prompt="What was written.",
    schema={
        "type": "object",
        "properties": {"status": {"enum": ["more", "done"]}},
        "required": ["status"],
    },
)
TALK = Workflow(
    name="talk",
    description="Goes on until done.",
    roles=[WRITER],
    moderator={START: "writer", "writer": {"more": "writer", "done": END}},
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


def test_a_limit_of_money_stops_before_the_next_role_and_a_higher_one_goes_on(
    engine: Engine, tmp_path: Path
) -> None:
    """Costs before the stop count, the raised limit is on disk, and no role is asked twice."""
    thread = talk(engine, tmp_path, CHEAP, CHEAP, CHEAP, max_cost=1.0)
    assert settle(engine, thread) == {
        "status": "limit",
        "message": "the limit of $1 is reached",
        "steps": 2,
    }
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
    """The agent in flight is stopped; the void says that a limit did it, and the bundle never sees
    it.
    """
    script = tmp_path / "answers.yaml"
    script.write_text("- {role: writer, meta: {status: done}, delay_s: 600}\n", "utf-8")
    granted(engine.store, build_workflow(TALK))
    thread = engine.run(
        "talk", prompt="", options=RunOptions(agents={"": f"scripted:{script}"}, max_seconds=3)
    )
    assert settle(engine, thread)["status"] == "limit"
    assert [record["void"] for record in written(engine, thread) if "void" in record] == ["limit"]
    with pytest.raises(RefusedError, match=r"resume it with --max-time above 3s"):
        engine.resume(thread)


LEAD = source(
    "lead",
    """
    yield {"output": {"role": "lead", "content": "", "meta": {"status": "begun"}}}
    done = yield {"flow": {"name": "talk"}}
    return {"success": done["success"], "message": "led", "data": done["threadId"]}
""",
    policy={"flow": {}},
)


def lead(engine: Engine, tmp_path: Path, script: str, **limits: float) -> ThreadId:
    """Start a thread that has another one talk."""
    (tmp_path / "answers.yaml").write_text(script, "utf-8")
    agents = {"scripted": {"use": "scripted", "file": str(tmp_path / "answers.yaml")}}
    engine.store.config_path.write_text(json.dumps({"agents": agents, "agent": "scripted"}))
    granted(engine.store, build_workflow(TALK))
    granted(engine.store, LEAD)
    return engine.run("lead", prompt="", options=RunOptions(**limits))  # type: ignore[arg-type]  # the limits, by name


def test_a_sub_thread_draws_on_its_parent_s_limit(engine: Engine, tmp_path: Path) -> None:
    """Parent and child stop at the limit, neither fails, and a higher one lets both go on; the
    child's costs are counted once.
    """
    more = f"- {{role: writer, meta: {{status: more}}, usage: {CHEAP}}}\n"
    thread = lead(
        engine, tmp_path, f"{more * 3}- {{role: writer, meta: {{status: done}}}}", max_cost=1.0
    )
    assert settle(engine, thread)["status"] == "limit"
    [child] = [one for one in engine.threads() if one.name == "talk"]
    assert (child.status in ("limit", "killed"), round(child.spent.cost, 6)) == (True, 1.2)
    with pytest.raises(RefusedError, match="resume it with --max-cost above 1"):
        engine.resume(thread)
    engine.resume(thread, options=RunOptions(max_cost=10))
    assert finish(engine, thread)["data"] == child.thread_id
    assert round(engine.thread(thread).spent.cost, 6) == 1.8
    assert [record["void"] for record in written(engine, thread) if "void" in record] == ["limit"]
    assert [engine.verify(one.thread_id).ok for one in engine.threads()] == [True, True]


def test_a_sub_thread_that_ended_with_its_parent_goes_on_with_it(
    engine: Engine, tmp_path: Path
) -> None:
    """A kill reaches the child, and is undone for both by one resume of the parent."""
    script = f"- {{role: writer, meta: {{status: more}}, usage: {CHEAP}}}\n- {{role: writer, meta: {{status: more}}, delay_s: 600}}\n"
    thread = lead(engine, tmp_path, script)
    wait_for(engine, thread, lambda event: "step 2 of" in str(event.body.get("text")))
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    (tmp_path / "answers.yaml").write_text(script.replace("more}, delay_s: 600", "done}"), "utf-8")
    engine.resume(thread)
    assert finish(engine, thread)["success"] is True
    assert [len(engine.threads("talk")), round(engine.thread(thread).spent.cost, 6)] == [1, 0.6]


def models(engine: Engine, server: ModelServer, body: str, **limits: float) -> ThreadId:
    """Start a thread that asks a model whose tokens cost a dollar each."""
    model = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
    prices = {"tiny": {"input": 1_000_000, "output": 1_000_000}}
    engine.store.config_path.write_text(
        json.dumps({"models": {"tiny": model}, "model": "tiny", "prices": prices})
    )
    granted(engine.store, source("asks", body, policy={"llm": {}, "all": {}}))
    return engine.run("asks", prompt="", options=RunOptions(environment={}, **limits))  # type: ignore[arg-type]


def test_what_runs_side_by_side_is_counted_and_stopped(engine: Engine) -> None:
    """Each part is counted when it is done; those that were not begun at the limit are asked once
    it is higher, and only those.
    """
    body = """
    answers = yield {"all": {"effects": [{"llm": {"prompt": str(number)}} for number in range(4)], "limit": 1}}
    return {"success": True, "message": "", "data": [answer["outcome"] for answer in answers]}
"""
    with serving(lambda seen: says(f"to {seen.body['messages'][-1]['content']}")) as server:
        thread = models(engine, server, body, max_tokens=220)
        assert settle(engine, thread)["message"] == "the limit of 220 tokens is reached"
        assert len(server.asked) == 2
        engine.resume(thread, options=RunOptions(max_tokens=10_000, environment={}))
        assert finish(engine, thread)["data"] == ["to 0", "to 1", "to 2", "to 3"]
        assert len(server.asked) == 4
    view = engine.thread(thread)
    assert (view.spent.tokens, view.spent.cost, view.spent.unpriced) == (440, 440, False)


def test_a_try_that_failed_is_counted(engine: Engine) -> None:
    """The endpoint wants its money for it, too."""
    body = """
    text = yield {"llm": {"prompt": "x", "retry": {"times": 1, "on": ["refusal"], "pause_s": 0}}}
    return {"success": True, "message": text}
"""
    with serving([says("I", stop="refusal"), says("Well.")]) as server:
        thread = models(engine, server, body)
        assert finish(engine, thread)["message"] == "Well."
    assert (engine.thread(thread).spent.tokens, engine.thread(thread).spent.cost) == (220, 220)


def test_a_limit_is_seen_while_a_model_still_speaks(engine: Engine) -> None:
    """The stream is cut; what had arrived is counted in the void, and the bundle never hears of
    it.
    """
    body = """
    text = yield {"llm": {"prompt": "x"}}
    return {"success": True, "message": text}
"""
    with serving(
        [says(*["many words and more "] * 200, gate=threading.Event()), says("Short.")]
    ) as server:
        thread = models(engine, server, body, max_tokens=400)
        assert settle(engine, thread)["status"] == "limit"
        [void] = [record for record in engine.thread(thread).records if "void" in record]
        assert 400 <= void["usage"]["outputTokens"] <= 1000
        engine.resume(thread, options=RunOptions(max_tokens=100_000, environment={}))
        assert finish(engine, thread)["message"] == "Short."
    assert (
        engine.thread(thread).spent.tokens
        == void["usage"].get("inputTokens", 0) + void["usage"]["outputTokens"] + 110
    )


def test_a_whole_answer_that_reaches_the_limit_is_kept(engine: Engine) -> None:
    """An answer that reaches the limit is paid for, so the thread stops behind it, and the model is
    not asked for it again.
    """
    block = 'It is written.\n\n```json\n{{"status": "{word}"}}\n```\n'
    with serving([says(block.format(word="more")), says(block.format(word="done"))]) as server:
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        engine.store.config_path.write_text(
            json.dumps({"agents": {"thinker": agent}, "agent": "thinker"})
        )
        granted(engine.store, build_workflow(TALK))
        thread = engine.run("talk", prompt="", options=RunOptions(environment={}, max_tokens=110))
        assert settle(engine, thread) == {
            "status": "limit",
            "message": "the limit of 110 tokens is reached",
            "steps": 1,
        }
        engine.resume(thread, options=RunOptions(max_tokens=10_000, environment={}))
        finish(engine, thread)
        assert len(server.asked) == 2
    assert engine.thread(thread).spent.tokens == 220


def test_a_replay_adds_nothing(engine: Engine, tmp_path: Path) -> None:
    """A thread that is driven again from its journal has spent what it had spent."""
    thread = talk(engine, tmp_path, CHEAP, CHEAP, CHEAP, max_rounds=2)
    assert settle(engine, thread)["status"] == "limit"
    before = engine.thread(thread).spent
    end_workers(engine.store.root)
    engine.resume(thread, options=RunOptions(max_rounds=3))
    settle(engine, thread)
    assert (before.tokens, engine.thread(thread).spent.tokens) == (300, 450)
    assert engine.verify(thread).ok
    assert engine.thread(thread).spent.tokens == 450


def test_a_fork_tells_inherited_from_new(engine: Engine, tmp_path: Path) -> None:
    """Costs of the source are shown in the fork, and do not count as spent by it."""
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
