"""The extractor as a tool of a model that plays a role, in whole threads on real workers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.bundles import granted, source
from testbed.modelserver import ModelServer, Seen, Turn, calls, fails, says, serving
from testbed.steering import finish, settle
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "pattern": {"type": "string"}},
    "required": ["path"],
}
ROLE = {
    "description": "Works.",
    "systemPrompt": "Work.",
    "extractPrompt": "The path.",
    "schema": PATH,
}
WORK = source(
    "work",
    """
    step = yield {"role": {"name": "worker"}}
    return {"success": True, "message": step["content"], "data": step["meta"]}
""",
    roles={"worker": ROLE},
    policy={"role": {}},
    parameters={},
)
DEEP: dict[str, Any] = {}
for _ in range(100):
    DEEP = {"not": DEEP}
TASK = "Mend the parser in /srv/app, please."


def start(engine: Engine, server: ModelServer, *, extractor: bool = True) -> ThreadId:
    agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "large"}
    reader = {**agent, "model": "small"}
    config: dict[str, Any] = {
        "agents": {"mine": agent},
        "agent": "mine",
        "models": {"reader": reader},
    }
    prices = {"large": {"input": 1000, "output": 1000}, "small": {"input": 10, "output": 10}}
    engine.store.config_path.write_text(
        json.dumps({**config, "prices": prices, **({"extractor": "reader"} if extractor else {})})
    )
    granted(engine.store, WORK)
    return Engine(engine.store).run("work", prompt=TASK, options=RunOptions(environment={}))


def two_models(agent: list[Turn], reader: list[Turn]) -> Any:
    """Each model has answers of its own."""
    left = {"large": agent, "small": reader}
    return lambda seen: left[seen.body["model"]].pop(0)


def tool_results(server: ModelServer, model: str) -> list[Any]:
    """Return the answers of the tools in the last request to a model."""
    last = [body for body in server.asked if body["model"] == model][-1]
    return [message["content"] for message in last["messages"] if message["role"] == "tool"]


def test_an_agent_extracts_before_it_acts(engine: Engine) -> None:
    """A model takes a path out of the task with the tool; what the extractor used is counted to the
    step, each at its own price.
    """
    wanted = {"text": TASK, "schema": PATH, "prompt": "The directory to work in."}
    agent = [calls(("extract", wanted)), says('Mended.\n```json\n{"path": "/srv/app"}\n```')]
    with serving(two_models(agent, [says('{"path": "/srv/app"}')])) as server:
        thread = start(engine, server)
        assert finish(engine, thread) == {
            "success": True,
            "message": "Mended.",
            "data": {"path": "/srv/app"},
        }
        assert tool_results(server, "large") == ['{"path": "/srv/app"}']
        [asked] = [body for body in server.asked if body["model"] == "small"]
        assert TASK in asked["messages"][1]["content"]
        assert "The directory to work in." in asked["messages"][1]["content"]
    usage = next(record["usage"] for record in engine.thread(thread).records if "role" in record)
    assert (usage["inputTokens"], usage["outputTokens"], usage["model"]) == (300, 30, "large")
    assert usage["cost"] == pytest.approx(0.22 + 0.0011)
    assert engine.verify(thread).ok


def test_without_an_extractor_there_is_no_such_tool(engine: Engine) -> None:
    """A config that names no extractor gives agents none."""
    with serving([says('{"path": "/"}')]) as server:
        finish(engine, start(engine, server, extractor=False))
        assert "tools" not in server.asked[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": "x"}, "'schema' is a required property"),
        ({"text": "x", "schema": {"type": "objekt"}}, "is not valid JSON Schema"),
        (
            {"text": "x", "schema": {"properties": {"a": {"pattern": "(a+)+$"}}}},
            "pattern cannot be used here",
        ),
        ({"text": "x", "schema": {"$ref": "http://127.0.0.1/x"}}, "$ref cannot be used here"),
        ({"text": "x", "schema": {"description": "x" * 20_001}}, "longer than 20000 characters"),
        ({"text": "x", "schema": DEEP}, "nested deeper than 32"),
        ("{", "not JSON"),
    ],
)
def test_a_call_that_is_wrong_is_answered_with_what_is_wrong(
    engine: Engine, arguments: Any, words: str
) -> None:
    """A schema of an agent can neither fetch, nor keep the engine busy, nor end the thread."""
    agent = [calls(("extract", arguments)), says('{"path": "/"}')]
    with serving(two_models(agent, [])) as server:
        finish(engine, start(engine, server))
        [answer] = tool_results(server, "large")
    assert words in answer


def test_a_text_that_does_not_say_it_gives_no_data(engine: Engine) -> None:
    """The agent hears that nothing fits, and goes on."""
    agent = [calls(("extract", {"text": "Hello.", "schema": PATH})), says('{"path": "/"}')]
    with serving(two_models(agent, [says("It does not say.") for _ in range(3)])) as server:
        thread = start(engine, server)
        finish(engine, thread)
        [answer] = tool_results(server, "large")
    assert answer.startswith("the text does not give such data: ")
    assert [record for record in engine.thread(thread).records if "answer" in record] == []


def test_an_outage_of_the_extractor_pauses_the_thread(engine: Engine) -> None:
    """An extractor that is away is a lack of the machine, not an answer of the tool; what was used
    is counted.
    """

    def answer(seen: Seen) -> Turn:
        return (
            fails(503)
            if seen.body["model"] == "small"
            else calls(("extract", {"text": "Hello.", "schema": PATH}))
        )

    with serving(answer) as server:
        thread = start(engine, server)
        assert settle(engine, thread)["status"] == "paused"
    void = next(record for record in engine.thread(thread).records if "void" in record)
    assert (void["void"], void["usage"]["inputTokens"]) == ("environment", 100)
