"""Whole threads on real workers, with their spans and metrics in a collector on loopback. One
thread is observed, and the tests look at what arrived.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from testbed.bundles import granted, source
from testbed.collector import Collector, SeenSpan, collecting, ulid_number
from testbed.modelserver import ModelServer, calls, says
from testbed.modelserver import serving as serving_model
from testbed.processes import end_workers
from testbed.steering import finish, settle
from testbed.webserver import WebServer, data
from testbed.webserver import serving as serving_web
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Cut, Engine, RunOptions

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["done"]}, "context": {"type": "string"}},
    "required": ["status"],
}
DONE = '```json\n{"status": "done"}\n```\n'
TELLER = """printf '```json\\n{"status": "done", "context": "%s"}\\n```\\n' "$TRACEPARENT" """
SECRET = "hunter22-value"
ROLE = {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": SCHEMA}
DOUBLE = source(
    "double",
    """
    number = yield {"null": {"value": input["params"]["n"]}}
    return {"success": True, "message": "doubled", "data": 2 * number}
""",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
BODY = """
    web = input["params"]["web"]
    yield {"role": {"name": "asker"}}
    told = yield {"role": {"name": "teller"}}
    yield {"flow": {"name": "double", "params": {"n": 4}}}
    for host in ("127.0.0.1", "localhost"):
        yield {"http": {"url": f"http://{host}:{web}/page?q=asked-secretly"}}
    try:
        yield {"script": {"language": "bash", "body": "exit 3"}}
    except EffectError:
        pass
    yield {"all": {"effects": [{"null": {"value": 1}}, {"null": {"fail": "quoting an answer"}}]}}
    yield {"output": {"role": "report", "content": "text of the report", "meta": {}}}
    return {"success": True, "message": told["meta"]["context"]}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A finished thread whose spans have arrived. fork: of it, at step 4. child: of its step 3."""

    engine: Engine
    collector: Collector
    web: WebServer
    thread: ThreadId
    fork: ThreadId
    child: ThreadId
    context: str

    @property
    def spans(self) -> dict[str, SeenSpan]:
        return self.collector.of(self.thread)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """A thread with every kind of span, and a fork of it."""
    root = tmp_path_factory.mktemp("traced") / "store"
    engine = Engine(Store.open(root))
    script = [
        calls(("double", {"n": 21})),
        says("no data"),
        says("It is 42: secret words.\n\n", DONE),
    ]
    with (
        collecting() as collector,
        serving_model(script) as model,
        serving_web(lambda _seen: data({"seen": "page"})) as web,
    ):
        try:
            thread = start(engine, collector, model, web)
            context = str(finish(engine, thread)["message"])
            fork = engine.fork(
                thread, cut=Cut(at=4), options=RunOptions(environment=variables(collector))
            )
            settle(engine, fork)
            collector.wait(lambda one: all(map(one.root, (thread, fork))))
            collector.wait(lambda one: one.metrics.get("uncaged.threads.left", 0) >= 4)
            child = ThreadId(
                str(collector.of(thread)["flow double"].attributes["uncaged.child.thread.id"])
            )
            yield Traced(
                engine=engine,
                collector=collector,
                web=web,
                thread=thread,
                fork=fork,
                child=child,
                context=context,
            )
        finally:
            assert end_workers(root) == []


def variables(collector: Collector) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "MY_KEY": SECRET,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=a-credential",
        **collector.variables,
    }


def start(engine: Engine, collector: Collector, model: ModelServer, web: WebServer) -> ThreadId:
    config = {
        "agents": {
            "mine": {"use": "openai", "baseUrl": model.base_url("openai"), "model": "tiny"},
            "shell": {"use": "command", "argv": ["sh", "-c", TELLER]},
        },
        "agent": "mine",
        "roles": {"teller": "shell"},
        "prices": {"tiny": {"input": 1.0, "output": 1.0}},
        "spans": {"hosts": [f"127.0.0.1:{web.port}"]},
    }
    engine.store.config_path.write_text(json.dumps(config))
    granted(engine.store, DOUBLE)
    hosts = [f"127.0.0.1:{web.port}", f"localhost:{web.port}"]
    traced = source(
        "traced",
        BODY,
        kind="workflow",
        parameters={"type": "object", "properties": {"web": {"type": "integer"}}},
        roles={"asker": ROLE, "teller": ROLE},
        policy={
            "role": {"tools": ["flow:double"]},
            "flow": {},
            "http": {"hosts": hosts, "private": True},
            "all": {},
            "null": {},
        },
    )
    granted(engine.store, traced)
    options = RunOptions(environment=variables(collector))
    params = {"web": web.port}
    return engine.run("traced", prompt="asked-secretly", params=params, options=options)


def test_all_spans_of_a_thread_are_in_the_trace_of_its_id(traced: Traced) -> None:
    """The trace's id is the ULID's 16 bytes, and each span's parent is a span of the same trace."""
    spans = traced.spans.values()
    known = {span.span for span in spans}
    assert len(known) == len(spans)
    assert [span.name for span in spans if span.parent not in known] == ["invoke_workflow traced"]
    assert all(span.begin_ns <= span.end_ns for span in spans)
    assert {span.trace for span in spans} == {f"{ulid_number(traced.thread):032x}"}


def test_steps_are_below_the_thread_and_turns_below_the_attempts(traced: Traced) -> None:
    """A role's step has an attempt per answer; turns and tool calls are below the attempt in which
    they were made.
    """
    spans = traced.spans
    below = {name: parent_name(spans, span) for name, span in spans.items()}
    assert below == {
        "invoke_workflow traced": "",
        "drive": "invoke_workflow traced",
        "invoke_agent asker": "invoke_workflow traced",
        "attempt 1": "invoke_agent asker",
        "attempt 2": "invoke_agent asker",
        "chat tiny": "attempt 1",
        "execute_tool double": "attempt 1",
        "chat tiny (2)": "attempt 1",
        "chat tiny (3)": "attempt 2",
        "invoke_agent teller": "invoke_workflow traced",
        "attempt 1 (2)": "invoke_agent teller",
        "flow double": "invoke_workflow traced",
        "http GET": "invoke_workflow traced",
        "attempt 1 (3)": "http GET",
        "http GET (2)": "invoke_workflow traced",
        "refused": "invoke_workflow traced",
        "null": "all",
        "null (2)": "all",
        "all": "invoke_workflow traced",
        "output": "invoke_workflow traced",
    }


def parent_name(spans: dict[str, SeenSpan], span: SeenSpan) -> str:
    return next((name for name, one in spans.items() if one.span == span.parent), "")


def test_attributes_are_those_of_the_conventions(traced: Traced) -> None:
    """Operation, agent, model, provider, tool, tokens and cost have their names; errors a type."""
    spans = traced.spans
    root, step = spans["invoke_workflow traced"], spans["invoke_agent asker"]
    turn, tool = spans["chat tiny"], spans["execute_tool double"]
    assert root.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert root.attributes["gen_ai.conversation.id"] == traced.thread
    assert root.attributes["uncaged.thread.status"] == "completed"
    assert step.attributes["gen_ai.agent.name"] == "asker"
    assert step.attributes["uncaged.agent"] == "mine"
    assert step.attributes["gen_ai.usage.input_tokens"] == 300
    assert step.attributes["uncaged.cost.usd"] > 0
    assert turn.attributes["gen_ai.operation.name"] == "chat"
    assert turn.attributes["gen_ai.provider.name"] == "openai"
    assert turn.attributes["gen_ai.request.model"] == "tiny"
    assert turn.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert turn.attributes["gen_ai.usage.output_tokens"] == 10
    assert turn.attributes["server.address"] == "127.0.0.1"
    assert tool.attributes["gen_ai.tool.name"] == "double"
    assert spans["http GET"].attributes["http.response.status_code"] == 200
    assert spans["attempt 1"].attributes["error.type"] == "unusable"
    assert spans["refused"].attributes["error.type"] == "policy"
    assert root.resource["service.name"] == "uncaged-workflow"


def test_texts_are_in_no_attribute(traced: Traced) -> None:
    """Without the variable that asks for them, no span has a text of a prompt, an answer, an error
    or an address.
    """
    everything = repr(traced.collector.spans)
    for text in ("asked-secretly", "secret words", "quoting", "text of the report"):
        assert text not in everything, text


def test_forks_and_children_are_linked(traced: Traced) -> None:
    """A child's root is linked to the step that started it, and that step to the child; a fork's
    root to the last step that it was copied from.
    """
    spans, root = traced.spans, traced.collector.root(traced.child)
    step = spans["flow double"]
    assert root is not None
    [link] = root.links
    assert (link.trace, link.span, link.relation) == (step.trace, step.span, "parent")
    [back] = step.links
    assert (back.trace, back.span, back.relation) == (root.trace, root.span, "child")
    fork = traced.collector.root(traced.fork)
    assert fork is not None
    [origin] = fork.links
    source_step = spans["http GET"]
    assert (origin.trace, origin.span) == (source_step.trace, source_step.span)
    assert origin.relation == "source"
    assert [span.attributes["uncaged.step.seq"] for span in steps_of(traced, traced.fork)] == [
        5,
        6,
        7,
        8,
    ]


def steps_of(traced: Traced, thread: ThreadId) -> list[SeenSpan]:
    root = traced.collector.root(thread)
    assert root is not None
    found = [
        span
        for span in traced.collector.of(thread).values()
        if span.parent == root.span and span.name != "drive"
    ]
    return sorted(found, key=lambda span: int(span.attributes["uncaged.step.seq"]))


def test_agents_and_listed_hosts_get_the_trace_context(traced: Traced) -> None:
    """The agent's process has TRACEPARENT with the span of its attempt; a request has the header if
    config names its host, and no other request has it.
    """
    spans = traced.spans
    attempt, request = spans["attempt 1 (2)"], spans["attempt 1 (3)"]
    assert traced.context == f"00-{attempt.trace}-{attempt.span}-01"
    first, second = (seen.headers for seen in traced.web.seen[:2])
    assert first["traceparent"] == f"00-{request.trace}-{request.span}-01"
    assert "traceparent" not in {name.lower() for name in second}


def test_metrics_count_steps_flushes_tokens_and_money(traced: Traced) -> None:
    """Each worker sends its metrics when it ends."""
    metrics = traced.collector.metrics
    assert metrics["uncaged.threads.active"] == 0
    assert metrics["uncaged.threads.left"] >= 4
    assert metrics["uncaged.step.duration"] >= 10
    assert metrics["uncaged.journal.flush.duration"] >= 10
    assert metrics["uncaged.tokens"] == 330
    assert metrics["uncaged.cost"] == pytest.approx(330e-6)
    assert metrics["gen_ai.client.token.usage"] == 6
    assert metrics["gen_ai.client.operation.duration"] == 3


def test_the_credential_of_the_collector_reaches_it_alone(traced: Traced) -> None:
    """The exporter sends the configured headers; nothing in the store has them."""
    assert all(
        headers.get("authorization") == "a-credential" for headers in traced.collector.headers
    )
    for path in traced.engine.store.root.rglob("*"):
        if path.is_file():
            assert b"a-credential" not in path.read_bytes(), path
