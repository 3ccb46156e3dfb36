"""Sentences that a model translates: asked about, run, learned, and read without it afterwards."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from testbed.conversing import agree, now_ms
from testbed.modelserver import serving
from testbed.processes import end_workers
from testbed.sentences import add_flow, parameters
from testbed.translations import reply, shown, use
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.constructions.kept import Constructions
from uncaged_dispatcher.conversations.catalog import current_conversation
from uncaged_dispatcher.conversations.live import Caller
from uncaged_dispatcher.conversations.reader import ConversationReader
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_dispatcher.conversations.sessions import ConversationSession, new_request_id
from uncaged_dispatcher.conversations.translations import translated_sentences
from uncaged_dispatcher.conversations.usage import usage_by_request
from uncaged_engine.api import Engine
from uncaged_templates.dispatching import flows

pytestmark = pytest.mark.slow

ABOUT = "Make a lamp, a desk or other lights glow at a level."
LIGHTS = parameters(device={}, level={"type": "integer"})


@pytest.fixture
def engine(store: Store) -> Engine:
    """A store with the dispatcher's flows and one for lights, which its name alone starts."""
    engine = Engine(store)
    for name, source in flows():
        engine.add(name, source, accept=bool)
    add_flow(engine, "lights", "lights", schema=LIGHTS, description=ABOUT)
    return engine


def do(engine: Engine, text: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run one request with a person who agrees; return its reading and its result."""
    id = current_conversation(engine.store, now_ms())
    session = ConversationSession(engine, id, lambda: ConversationReader(engine, now_ms), now_ms)
    request = ConversationRequest(
        id=new_request_id(now_ms()), text=text, directory=str(Path.cwd()), **fields
    )
    caller = Caller(environment=dict(os.environ))
    events = {event["event"]: event for event in session.run(request, caller, agree)}
    return events.get("reading", {}).get("reading", {}), dict(events["result"]["result"])


def test_a_translated_sentence_is_learned(engine: Engine) -> None:
    """The first time the model is asked once; afterwards sentences of that form make no model call
    and start no thread but the flow's own.
    """
    with serving([reply(("lights", {"device": "lamp", "level": 40}))]) as server:
        use(engine, server)
        reading, result = do(engine, "make the lamp glow at 40")
        assert (reading["by"], result["success"], result["data"]) == (
            "model",
            True,
            {"device": "lamp", "level": 40},
        )
        before = len(engine.threads())
        reading, result = do(engine, "Make the desk glow at 7!")
        assert (reading["by"], result["data"]) == ("construction", {"device": "desk", "level": 7})
        assert len(server.asked) == 1
        assert len(engine.threads()) == before + 1
    [translated] = translated_sentences(engine.store, "lights")
    assert translated.sentence == "make the lamp glow at 40"
    assert translated.call.params == {"device": "lamp", "level": 40}
    assert translated_sentences(engine.store, "calls") == []


def test_a_flow_that_forbids_it_is_not_learned(engine: Engine) -> None:
    """A descriptor with `learn: false` leaves no construction, nor does an edited call."""
    add_flow(engine, "lights", "lights", schema=LIGHTS, description=ABOUT, learn=False)
    with serving([reply(("lights", {"device": "lamp"}))] * 2) as server:
        use(engine, server)
        assert do(engine, "make the lamp glow")[1]["success"]
        assert list(Constructions(engine.store).all()) == []
        assert do(engine, "make the lamp glow")[1]["success"]
        assert len(server.asked) == 2


def test_a_directive_forbids_or_demands_learning(engine: Engine) -> None:
    """A sentence after `dev:` is translated and run without the word, and not learned. A task
    to learn goes to an agent, though a pattern and the model could read it.
    """
    add_flow(engine, "tape", "record $(what:wildcard)", schema=parameters("what"))
    with serving([reply(("lights", {"device": "lamp"}))]) as server:
        use(engine, server)
        assert do(engine, "Dev: make the lamp glow")[1]["success"]
        assert shown(server.asked[0])["request"] == "make the lamp glow"
        assert list(Constructions(engine.store).all()) == []
        before = len(engine.threads())
        for text in ("record the rain", "learn: make the lamp glow"):
            _, result = do(engine, text, grammar=text[0] == "r")
            assert "reason" in result["message"]
            assert not result["success"]
        assert (len(server.asked), len(engine.threads())) == (1, before)


def test_a_question_of_the_model_is_asked_in_the_conversation(engine: Engine) -> None:
    """The person's answer to the model's question reaches the model, and the call runs."""
    question = {"text": "Which lamp?", "choices": ["desk", "hall"]}
    with serving([reply(question=question), reply(("lights", {"device": "desk"}))]) as server:
        use(engine, server)
        _, result = do(engine, "make it glow")
        assert result["data"] == {"device": "desk"}
        assert shown(server.asked[1])["clarified"] == [
            {"question": "Which lamp?", "answer": "desk"}
        ]


def test_the_model_gets_the_last_exchanges_and_the_attachments(
    engine: Engine, tmp_path: Path
) -> None:
    """Former requests with their results, the standing instructions and attached text are in the
    request; a file that is no text is refused before the model is asked.
    """
    note, image = tmp_path / "note.txt", tmp_path / "image.png"
    note.write_text("the lamp is in the hall")
    image.write_bytes(b"\x89PNG\xff")
    with serving([reply(("lights", {"device": "hall"}))]) as server:
        use(engine, server, "instructions: Lamps are called by their room.\n")
        do(engine, "lights")
        do(engine, "make what the note says glow", attachments=(str(note),))
        context = shown(server.asked[0])["context"]
        assert [one["request"] for one in context["exchanges"]] == ["lights"]
        assert context["attachments"] == [{"name": "note.txt", "text": "the lamp is in the hall"}]
        assert context["instructions"] == "Lamps are called by their room."
        _, result = do(engine, "make this glow", attachments=(str(image),))
        assert "no UTF-8 text" in result["message"]
        assert len(server.asked) == 1


def test_several_translated_calls_run_in_one_thread(engine: Engine) -> None:
    """Three calls of one sentence are run by `calls`, and a result flows on."""
    wanted = [
        ("lights", {"device": "desk", "level": 7}),
        ("lights", {"device": "${result-0.device} lamp"}),
        ("lights", {"level": "${result-0.level}"}),
    ]
    with serving([reply(*wanted)]) as server:  # type: ignore[arg-type]  # tuples of a flow and its parameters
        use(engine, server)
        reading, result = do(engine, "set the desk to 7, then its lamp, then the rest alike")
    assert len(reading["calls"]) == 3
    assert [one["data"] for one in result["data"]["results"]] == [
        {"device": "desk", "level": 7},
        {"device": "desk lamp"},
        {"level": 7},
    ]


def test_without_a_model_a_miss_names_the_nearest_flows(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread is started; the result has the flows that are near, and what is missing."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    _, result = do(engine, "brighten the lights")
    assert (result["status"], result["exitCode"]) == ("missed", 5)
    assert "no model is configured" in result["message"]
    assert "lights" in json.dumps(result["details"]["nearest"])
    assert engine.threads() == []


def test_an_excluded_model_is_not_asked(engine: Engine) -> None:
    """A request without the model tier is a miss, although a model is configured."""
    with serving([]) as server:
        use(engine, server)
        _, result = do(engine, "brighten the lights", model=False)
        assert (result["status"], server.asked) == ("missed", [])


def test_the_usage_of_a_request_has_its_translation(engine: Engine) -> None:
    """What the model used is the usage of the request that it was asked for, also of one that it
    did not understand; a hit of a construction uses none, and a removed thread is named.
    """
    turns = [reply(("lights", {"device": "lamp"})), reply(question={"text": "Which?"})]
    with serving(turns) as server:
        use(engine, server)
        for text in ("make the lamp glow", "make the desk glow", "glow as before"):
            do(engine, text)
    id = current_conversation(engine.store, now_ms())
    asked, hit, missed = usage_by_request(engine, id)[:2] + usage_by_request(engine, id)[-1:]
    assert [one.request.text for one in (asked, hit, missed)] == [
        "make the lamp glow",
        "make the desk glow",
        "glow as before",
    ]
    assert [len(one.threads) for one in (asked, hit, missed)] == [2, 1, 1]
    assert (asked.spent.tokens > 0, hit.spent.tokens) == (True, 0)
    assert missed.spent.tokens == engine.thread(missed.threads[0]).spent.tokens > 0
    engine.remove_thread(asked.threads[0])
    [left, *_] = usage_by_request(engine, id)
    assert (left.removed, left.spent.tokens) == (asked.threads[:1], 0)


def test_a_cancelled_request_ends_its_translation(engine: Engine) -> None:
    """Ctrl-C while the model thinks kills the thread of the translation."""
    gate = threading.Event()
    with serving([reply(gate=gate)]) as server:
        use(engine, server)
        id = current_conversation(engine.store, now_ms())
        session = ConversationSession(
            engine, id, lambda: ConversationReader(engine, now_ms), now_ms
        )
        request = ConversationRequest(id=new_request_id(now_ms()), text="glow", directory="/")
        found: dict[str, Any] = {}
        for event in session.run(request, Caller(environment=dict(os.environ)), agree):
            found[event["event"]] = event
            if event["event"] == "translating":
                session.cancel(request.id)
        gate.set()
    assert found["result"]["result"]["status"] == "cancelled"
    assert engine.thread(found["translating"]["threadId"]).summary.status == "killed"
    assert end_workers(engine.store.root) == []
