"""Flows as tools of a model that plays a role: whole threads on real workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from testbed.bundles import granted, source
from testbed.modelserver import ModelServer, calls, says, serving
from testbed.processes import end_workers
from testbed.steering import finish, settle, wait_for
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["done"]}}, "required": ["status"]}
DONE = '```json\n{"status": "done"}\n```\n'
DOUBLE = source(
    "double",
    """
    number = yield {"null": {"value": input["params"]["n"], "mark": True, "first_s": input["params"].get("first_s", 0)}}
    return {"success": number != 13, "message": "doubled", "data": 2 * number}
""",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer"}, "first_s": {"type": "number"}},
        "required": ["n"],
    },
)
RAW_BODY = """
    yield {"null": {"value": 1}}
    return {"success": True, "message": "", "data": {"directOutput": "the raw result"}, "direct": True}
"""
RAW = source("raw", RAW_BODY)


def asker(*tools: str) -> bytes:
    role = {
        "description": "Asks.",
        "systemPrompt": "Ask.",
        "extractPrompt": "Say how it went.",
        "schema": SCHEMA,
    }
    body = """
    step = yield {"role": {"name": "asker"}}
    return {"success": True, "message": step["content"], "data": step["meta"]}
"""
    return source(
        "asker", body, roles={"asker": role}, policy={"role": {"tools": list(tools)}}, parameters={}
    )


def start(engine: Engine, server: ModelServer, *tools: str) -> ThreadId:
    agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
    engine.store.config_path.write_text(json.dumps({"agents": {"mine": agent}, "agent": "mine"}))
    for text in (DOUBLE, RAW, asker(*tools)):
        granted(engine.store, text)
    return engine.run("asker", prompt="go", options=RunOptions(environment={}))


def results(body: Any) -> Sequence[str]:
    """Return the answers of the tools in a request to the model."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def children(engine: Engine, thread: ThreadId) -> list[ThreadId]:
    return [
        one.thread_id
        for one in reversed(engine.threads())
        if engine.thread(one.thread_id).start.get("parent", {}).get("threadId") == thread
    ]


def test_a_role_calls_the_flows_that_its_policy_names(engine: Engine) -> None:
    """Flows are described with their parameters; a call is a child thread; the model reads wrong
    arguments and failures as answers.
    """
    script = [
        calls(("double", {"n": 21}), ("double", {"n": "many"}), ("double", {"n": 13}), ("raw", {})),
        says("It is 42.\n\n", DONE),
    ]
    with serving(script) as server:
        thread = start(engine, server, "flow:double")
        assert finish(engine, thread)["message"] == "It is 42."
        [tool] = server.asked[0]["tools"]
        assert tool["function"]["name"] == "double"
        assert tool["function"]["parameters"]["required"] == ["n"]
        right, wrong, failed, other = results(server.asked[1])
    assert json.loads(right) == {"success": True, "message": "doubled", "data": 42}
    assert "n: must be integer; 'many' is not" in wrong
    assert json.loads(failed)["success"] is False
    assert "raw" in other, "a flow that the policy does not name is no tool"
    assert [engine.thread(child).start["parent"]["seq"] for child in children(engine, thread)] == [
        1,
        1,
    ]
    assert engine.verify(thread).ok


def test_all_flows_are_those_that_a_person_did_not_mark(engine: Engine) -> None:
    """`flow:*` offers the enabled flows without the asker itself, a disabled one, one that needs
    consent at each sentence, and those that could start that one.
    """
    with serving([says(DONE)]) as server:
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = {"agents": {"mine": agent}, "agent": "mine"}
        engine.store.config_path.write_text(json.dumps(config))
        for text in (
            DOUBLE,
            RAW,
            source("off", RAW_BODY),
            source("marked", RAW_BODY),
            source("any", RAW_BODY, policy={"null": {}, "flow": {}}),
            source("one", RAW_BODY, policy={"null": {}, "flow": {"names": ["marked"]}}),
            source("other", RAW_BODY, policy={"null": {}, "flow": {"names": ["double"]}}),
            asker("flow:*"),
        ):
            granted(engine.store, text)
        engine.registry.set_enabled("off", False)
        engine.registry.set_confirm("marked", True)
        thread = engine.run("asker", prompt="go", options=RunOptions(environment={}))
        finish(engine, thread)
        offered = [tool["function"]["name"] for tool in server.asked[0]["tools"]]
    assert offered == ["double", "other", "raw"]


def test_a_direct_output_is_the_answer(engine: Engine) -> None:
    """The raw result is the step's content, word for word; only its data is still asked for, and
    nothing after it is begun.
    """
    with serving([calls(("raw", {}), ("double", {"n": 1})), says("As asked.\n", DONE)]) as server:
        thread = start(engine, server, "flow:raw", "flow:double")
        result = finish(engine, thread)
        assert len(server.asked) == 2
    assert (result["message"], result["data"]) == ("the raw result", {"status": "done"})
    assert len(children(engine, thread)) == 1
    assert results(server.asked[1])[1] == "not done: a call before it gave the answer"


def test_flows_are_called_ten_times_at_most(engine: Engine) -> None:
    """The eleventh call of an answer gets the limit as its answer, and starts no thread."""
    script = [calls(*[("double", {"n": number}) for number in range(11)]), says(DONE)]
    with serving(script) as server:
        thread = start(engine, server, "flow:double")
        finish(engine, thread)
        answers = results(server.asked[1])
    assert [json.loads(answer)["data"] for answer in answers[:10]] == [
        2 * number for number in range(10)
    ]
    assert "10 times" in answers[10]
    assert len(children(engine, thread)) == 10


def test_a_call_that_a_crash_left_open_finds_its_thread_again(engine: Engine) -> None:
    """The role is asked again after the crash; the same call is the same child, which goes on and
    is not started twice.
    """
    with serving(
        [
            calls(("double", {"n": 4, "first_s": 600})),
            calls(("double", {"n": 4, "first_s": 600})),
            says("Eight.\n", DONE),
        ]
    ) as server:
        thread = start(engine, server, "flow:double")
        wait_for(
            engine,
            thread,
            lambda event: event.kind == "progress" and "step 1 of" in str(event.body.get("text")),
        )
        end_workers(engine.store.root)
        engine.resume(thread)
        assert finish(engine, thread)["message"] == "Eight."
        assert json.loads(results(server.asked[2])[0])["data"] == 8
    assert len(children(engine, thread)) == 1


def test_a_kill_reaches_the_flows_that_a_model_called(engine: Engine) -> None:
    """Nothing runs on."""
    with serving([calls(("double", {"n": 4, "first_s": 600}))]) as server:
        thread = start(engine, server, "flow:double")
        wait_for(
            engine,
            thread,
            lambda event: event.kind == "progress" and "step 1 of" in str(event.body.get("text")),
        )
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"
    [child] = children(engine, thread)
    assert settle(engine, child)["status"] == "killed"
