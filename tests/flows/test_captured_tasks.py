"""Task flows made of the flows that an agent called: proof, what is not done again, bad traces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import granted, source
from testbed.forked_commands import ForkedCommands
from testbed.modelserver import Seen as Asked
from testbed.modelserver import Turn, calls, says, serving
from testbed.recordings import Commands
from testbed.steering import finish
from testbed.webserver import Reply, Seen, WebServer, data
from testbed.webserver import serving as serving_web
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

FIELDS = {
    "type": "object",
    "properties": {
        "genre": {"type": "string"},
        "count": {"type": "integer"},
        "title": {"type": "string"},
        "songs": {"type": "array"},
        "id": {"type": "integer"},
        "url": {"type": "string"},
    },
}
CHARTS = """
    genre, count = input["params"]["genre"], input["params"]["count"]
    yield {"null": {}}
    songs = [{"title": f"{genre} song {number}", "id": 100 + number} for number in range(count)]
    return {"success": count < 50, "message": f"{count} songs", "data": {"note": "x" * 500, "songs": songs}}
"""
PLAYLIST = """
    yield {"all": {"effects": []}}
    return {"success": True, "message": "made", "data": {"id": 4711, "title": input["params"]["title"]}}
"""
ADD = """
    yield {"all": {"effects": []}}
    count = len(input["params"]["songs"])
    return {"success": True, "message": f"added {count} songs to {input['params']['id']}", "data": count}
"""
ORDER = """
    made = yield {"http": {"method": "POST", "url": input["params"]["url"], "json": {"id": input["params"]["id"]}}}
    return {"success": True, "message": "ordered", "data": made["json"]}
"""
ACTING: dict[str, object] = {"null": {}, "all": {}}
WEB = {"http": {"hosts": ["127.0.0.1:*"], "private": True}}
FLOWS = {
    "charts": source("charts", CHARTS, parameters=FIELDS),
    "playlist": source("playlist", PLAYLIST, parameters=FIELDS, policy=ACTING),
    "add-songs": source("add-songs", ADD, parameters=FIELDS, policy=ACTING),
    "order": source("order", ORDER, parameters=FIELDS, policy=WEB),
}
SONGS = [{"title": f"blues song {number}", "id": 100 + number} for number in range(3)]
BLUES: tuple[Turn, ...] = (
    calls(("charts", {"genre": "blues", "count": 70})),
    calls(("charts", {"genre": "blues", "count": 3})),
    calls(("playlist", {"title": "My blues list"})),
    calls(("add-songs", {"id": 4711, "songs": SONGS})),
)
PROMPT = "make a playlist of 3 songs of blues"


@pytest.fixture
def engine(full_store: Store) -> Engine:
    engine = Engine(full_store)
    for text in (*FLOWS.values(), asker(1), asker(2)):
        granted(engine.store, text)
    return engine


@pytest.fixture
def commands(engine: Engine, tmp_path: Path, forked: ForkedCommands) -> Commands:
    return Commands(engine.store, tmp_path, os.environ, forked)


def asker(steps: int) -> bytes:
    """Return a flow whose role calls flows in each of its steps."""
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["done"]}, "message": {"type": "string"}},
    }
    role = {
        "description": "Asks.",
        "systemPrompt": "Ask.",
        "extractPrompt": "Say.",
        "schema": schema,
    }
    body = f"""
    for _ in range({steps}):
        step = yield {{"role": {{"name": "asker"}}}}
    return {{"success": True, "message": step["meta"]["message"], "data": None}}
"""
    name = f"ask{steps}"
    policy = {"role": {"tools": ["flow:*"]}}
    return source(name, body, roles={"asker": role}, policy=policy, parameters={})


def agent_did(
    engine: Engine,
    *turns: Turn,
    prompt: str = PROMPT,
    steps: int = 1,
    message: str = "added 3 songs",
) -> ThreadId:
    """Run a thread whose agent does this; afterwards there is no model any more."""
    data = json.dumps({"status": "done", "message": message})
    done = says("It is done.\n\n", f"```json\n{data}\n```\n")
    with serving([*turns, done] * steps) as server:
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = {"agents": {"mine": agent}, "agent": "mine"}
        engine.store.config_path.write_text(json.dumps(config))
        thread = engine.run(f"ask{steps}", prompt=prompt, options=RunOptions(environment={}))
        finish(engine, thread)
    return thread


def capture(commands: Commands, thread: str, *options: str) -> Mapping[str, Any]:
    done = commands.run("capture", thread, "--name", "captured", "--accept", "--json", *options)
    assert done.code == 0, done.err
    found: Mapping[str, Any] = done.document
    return found


@pytest.mark.parametrize("form", ["task", "block"])
def test_three_flows_are_captured_and_run_without_the_agent(
    form: str, engine: Engine, commands: Commands
) -> None:
    """The same task with other values gives their result, and no model is there to ask."""
    thread = agent_did(engine, *BLUES)
    before = len(engine.threads())
    example = ("--example", "genre=jazz", "--example", "count=2")
    found = capture(commands, thread, "--as", form, *example)
    assert found["proof"] == {"state": "proved"}
    assert found["otherValues"]["values"] == {"genre": "jazz", "count": 2}
    assert found["otherValues"]["state"] == "succeeded"
    assert found["wording"]["patterns"] == [
        "make a playlist of $(count:number) songs of $(genre:wildcard)"
    ]
    assert found["parameters"] == {"genre": "blues", "count": "3"}
    [left_out] = found["leftOut"]
    assert left_out.startswith("call 1, charts: it failed: ")
    assert engine.bundle("captured").descriptor.policy.limits.keys() == {"flow"}
    [granted_right] = found["granted"]
    assert sorted(granted_right.rpartition("names: ")[2].split(", ")) == [
        "add-songs",
        "charts",
        "playlist",
    ]
    assert len(engine.threads()) == before, "the proof leaves no thread"
    result = finish(engine, engine.run("captured", prompt="", params={"genre": "jazz", "count": 2}))
    assert result["success"] is True
    assert (result["data"] if form == "task" else result["data"]["results"][-1]["result"]) == 2
    done = commands.run("do", "make a playlist of 4 songs of soul", "--yes")
    assert "added 4 songs to 4711" in done.out + done.err, done


def test_a_model_improves_the_wording_and_a_failing_example_is_no_proof(
    engine: Engine, commands: Commands
) -> None:
    """What does not hold of its answer is left out: the name of a flow, a pattern that reads all.
    The values of the further run are the person's, and its failure is in the report. Those of the
    model are an example once a run with them has succeeded.
    """
    thread = agent_did(engine, *BLUES)
    good = {
        "pattern": "fill a list with $(count:number) songs of $(genre:wildcard)",
        "sentence": "fill a list with 7 songs of folk",
        "values": {"count": 7, "genre": "folk"},
    }
    everything = {"pattern": "$(genre:wildcard)", "sentence": "x", "values": {"genre": "x"}}
    wrong = {**good, "pattern": "fill up $(count:number) $(genre:wildcard)"}
    answer = {
        "name": "charts",
        "description": "Fills a list with songs of a genre.",
        "patterns": [everything, wrong, good],
    }
    other = {
        "pattern": "load $(count:number) tracks by $(genre:wildcard)",
        "sentence": "load 8 tracks by a choir",
        "values": {"count": 8, "genre": "a choir"},
    }
    answers = [answer, {**answer, "patterns": [other]}]
    turns = [says(f"```json\n{json.dumps(one)}\n```\n") for one in answers]
    with serving(turns) as server:
        model = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        engine.store.config_path.write_text(json.dumps({"models": {"mine": model}}))
        done = commands.run(
            "capture", thread, "--accept", "--json", "--polish", "--example", "count=60"
        )
        [asked] = server.asked
        tried = capture(commands, thread, "--polish")
    assert done.code == 0, done.err
    assert "make a playlist of 3 songs of blues" in json.dumps(asked)
    assert "the name 'charts': a flow has it already" in done.err
    assert "it requires fewer than 2 words" in done.err
    assert "it does not read its own sentence as that call" in done.err
    found = done.document
    assert found["flow"] == "make-a-playlist-of-3"
    assert found["wording"]["description"] == "Fills a list with songs of a genre."
    assert found["wording"]["patterns"][1:] == [good["pattern"]]
    assert found["wording"]["examples"][1:] == []
    assert tried["otherValues"]["values"] == other["values"]
    assert tried["wording"]["examples"][1:] == [
        {"sentence": other["sentence"], "params": other["values"]}
    ]
    assert found["proof"]["state"] == "unproved"
    assert "with count=60 it failed at step 1" in found["proof"]["reason"]
    described = str(engine.bundle(found["flow"]).descriptor.description)
    assert "Unproved at step 1: with count=60" in described
    again = commands.run("capture", thread, "--name", "kept", "--accept", "--polish")
    assert "the wording is that of the prompt: " in again.err
    assert engine.registry.flow("kept") is not None


def test_a_look_that_repeats_and_one_that_nothing_used_are_left_out(
    engine: Engine, commands: Commands
) -> None:
    """Flows that only read are called once for each value, and not for values without a use. An
    answer that consists of values and words is the result's message.
    """
    blues = ("charts", {"genre": "blues", "count": 3})
    turns = (
        calls(("charts", {"genre": "soul", "count": 4})),
        calls(blues),
        calls(blues),
        calls(("playlist", {"title": "blues song 2"})),
    )
    thread = agent_did(
        engine,
        *turns,
        prompt="a playlist named like the last of 3 blues songs",
        message="The list is 4711.",
    )
    found = capture(commands, thread)
    assert found["proof"] == {"state": "proved"}
    assert found["leftOut"] == [
        "call 1, charts: it only reads, and nothing used its result",
        "call 3, charts: it repeats call 2",
    ]
    params = {"genre": "jazz", "count": 3}
    result = finish(engine, engine.run("captured", prompt="", params=params))
    assert (result["message"], result["data"]["title"]) == ("The list is 4711.", "jazz song 2")


def test_the_archive_of_a_stranger_proves_nothing(
    engine: Engine, commands: Commands, tmp_path: Path
) -> None:
    """Of an imported thread no called thread and no recorded outcome is used, and its path is no
    workflow.
    """
    thread = agent_did(engine, *BLUES)
    archive = tmp_path / "thread.tar"
    assert commands.run("export", thread, "-o", str(archive)).code == 0
    engine.remove_thread(thread)
    assert commands.run("import", str(archive)).code == 0
    assert engine.thread(thread).summary.imported
    workflow = commands.run("capture", thread, "--as", "workflow", "--accept")
    assert (workflow.code, "was imported" in workflow.err) == (1, True)
    found = capture(commands, thread)
    assert (
        "step 1: only the begin of its result is known, so later steps cannot refer to it"
        in found["notes"]
    )


NAMED = """
    wanted = {"genre": input["params"]["genre"], "count": 2}
    [charts, _] = yield {"all": {"effects": [{"flow": {"name": "charts", "params": wanted}}, {"now": {}}]}}
    songs = charts["outcome"]["data"]["songs"]
    name = yield {"llm": {"prompt": "Name the list of " + input["params"]["genre"], "input": songs}}
    title = name if isinstance(name, str) else name["text"]
    made = yield {"flow": {"name": "playlist", "params": {"title": title}}}
    return {"success": True, "message": made["data"]["title"], "data": made["data"]["id"]}
"""


def test_the_calls_of_a_thread_without_agents_are_captured(
    engine: Engine, commands: Commands
) -> None:
    """A model that a flow asked is asked again; its answer is the argument of the next call."""
    policy: dict[str, object] = {"all": {}, "flow": {}, "llm": {}, "now": {}}
    granted(engine.store, source("named", NAMED, parameters=FIELDS, policy=policy))

    def answer(asked: Asked) -> Turn:
        return says(f"Deep {'jazz' if 'jazz' in json.dumps(asked.body) else 'blues'}")

    with serving(answer) as server:
        model = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        engine.store.config_path.write_text(
            json.dumps({"models": {"mine": model}, "model": "mine"})
        )
        thread = engine.run("named", prompt="name a list of blues", params={"genre": "blues"})
        assert finish(engine, thread)["message"] == "Deep blues"
        found = capture(commands, thread)
        assert found["proof"] == {"state": "proved"}
        assert found["notes"] == ["step 2: a model may answer otherwise each time"]
        result = finish(engine, engine.run("captured", prompt="", params={"genre": "jazz"}))
    assert result == {
        "success": True,
        "message": "Deep jazz",
        "data": {"id": 4711, "title": "Deep jazz"},
    }
    assert engine.bundle("captured").descriptor.policy.limits == {
        "flow": {"names": ["charts", "playlist"]},
        "llm": {},
    }
    for form, why in (("block", "gives a model its input"), ("workflow", "no role answered")):
        refused = commands.run("capture", thread, "--as", form, "--accept")
        assert refused.code != 0
        assert why in refused.err


def test_a_thread_that_does_something_else_is_no_task(engine: Engine, commands: Commands) -> None:
    """Its own steps are calls of flows and models, or nothing is captured."""
    body = "    yield {'sleep': {'seconds': 0}}\n    yield {'flow': {'name': 'charts', 'params': {'genre': 'x', 'count': 1}}}\n"
    granted(engine.store, source("waits", body, policy={"sleep": {}, "flow": {}}))
    thread = engine.run("waits", prompt="")
    finish(engine, thread)
    refused = commands.run("capture", thread, "--name", "captured", "--accept")
    assert refused.code != 0
    assert "step 1 is sleep: a captured task calls flows and models only" in refused.err
    assert "no agent worked in this thread" in refused.err
    assert "uncaged-workflow run waits" in refused.err


@pytest.fixture(scope="module")
def shop() -> Iterator[WebServer]:
    """A shop that counts orders."""
    orders: list[str] = []

    def answer(seen: Seen) -> Reply:
        orders.append(seen.method)
        return data({"order": len(orders)})

    with serving_web(answer) as server:
        yield server


def ordered(engine: Engine, shop: WebServer) -> ThreadId:
    """Run a thread whose agent ordered a song, and forget the request."""
    turns = (
        calls(("charts", {"genre": "blues", "count": 3})),
        calls(("order", {"url": shop.url, "id": 102})),
    )
    thread = agent_did(engine, *turns, prompt="order the last of 3 blues songs")
    assert [seen.json for seen in shop.seen] == [{"id": 102}]
    shop.seen.clear()
    return thread


def test_a_request_that_was_sent_is_not_sent_again(
    engine: Engine, commands: Commands, shop: WebServer
) -> None:
    """The recorded reply is used in the proof, and the flow is saved as unproved at that step.
    With other values there is no reply, and the run is held.
    """
    found = capture(commands, ordered(engine, shop), "--example", "genre=jazz")
    assert shop.seen == []
    assert (found["proof"]["state"], found["proof"]["step"]) == ("unproved", 2)
    assert f"flow order: http POST {shop.url}" in found["proof"]["reason"]
    other = found["otherValues"]
    assert (other["state"], other["step"]) == ("held", 2)
    assert "has no recorded outcome for these values" in other["reason"]
    description = engine.bundle("captured").descriptor.description
    assert "Unproved at step 2" in str(description)


def test_a_request_is_sent_again_after_a_yes(
    engine: Engine, commands: Commands, shop: WebServer
) -> None:
    """With `--resend` it is sent once more; the shop's other number is another result."""
    thread = ordered(engine, shop)
    done = commands.run("capture", thread, "--name", "captured", "--accept", "--resend")
    assert [seen.method for seen in shop.seen] == ["POST"]
    assert done.code != 0
    assert "the result of step 2 (order).data.order was" in done.err
    assert engine.registry.flow("captured") is None
    shop.seen.clear()


def test_a_flow_that_gives_another_result_is_shown_and_not_saved(
    engine: Engine, commands: Commands
) -> None:
    """A flow that changed since is named, with the differences; `--unproved` saves all the same."""
    thread = agent_did(engine, *BLUES)
    granted(
        engine.store,
        source("playlist", PLAYLIST.replace("4711", "4712"), parameters=FIELDS, policy=ACTING),
    )
    done = commands.run("capture", thread, "--name", "captured", "--accept")
    assert done.code == 1
    assert "step 2: playlist changed since" in done.err
    assert "the result of step 2 (playlist).data.id was 4711, and is 4712 now" in done.err
    assert engine.registry.flow("captured") is None
    found = capture(commands, thread, "--unproved")
    assert found["proof"]["state"] == "different"


def test_a_flow_that_is_gone_cannot_be_captured(engine: Engine, commands: Commands) -> None:
    """The refusal names the call and the flow."""
    thread = agent_did(engine, *BLUES)
    engine.registry.remove("playlist")
    done = commands.run("capture", thread, "--accept")
    assert done.code == 1
    assert "call 3 ran the flow 'playlist', which was removed or disabled since" in done.err


def test_one_of_several_role_steps_is_chosen(engine: Engine, commands: Commands) -> None:
    """Without `--step` a thread in which two steps called flows is refused."""
    thread = agent_did(engine, *BLUES, steps=2)
    done = commands.run("capture", thread, "--accept", "--as", "task")
    assert done.code == 2
    assert "steps 1, 2 of thread" in done.err
    assert capture(commands, thread, "--step", "2")["proof"] == {"state": "proved"}


def test_nothing_is_saved_without_a_yes(engine: Engine, commands: Commands) -> None:
    """Without a terminal and `--accept`, nothing is tried and nothing is added."""
    thread = agent_did(engine, *BLUES)
    done = commands.run("capture", thread, "--name", "captured")
    assert done.code == 1
    assert "add --accept" in done.err
    assert engine.registry.flow("captured") is None


def test_the_results_of_removed_threads_are_known_by_their_heads(
    engine: Engine, commands: Commands
) -> None:
    """Without the thread of a call, a result of more than 400 characters is compared by its
    digest, and nothing refers to it: the list of songs stays as it was.
    """
    thread = agent_did(engine, *BLUES)
    removed: Sequence[str] = [
        one.thread_id for one in engine.threads() if one.name in FLOWS and one.thread_id != thread
    ]
    for child in removed:
        engine.remove_thread(child)
    found = capture(commands, thread)
    assert found["proof"] == {"state": "proved"}
    assert (
        "step 1: only the begin of its result is known, so later steps cannot refer to it"
        in found["notes"]
    )
    result = finish(engine, engine.run("captured", prompt="", params={"genre": "jazz", "count": 2}))
    assert result["data"] == 3
