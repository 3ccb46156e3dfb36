"""Threads of which several workers send spans."""

from __future__ import annotations

import json
import os
import threading

import pytest
from testbed.bundles import granted, source
from testbed.collector import Collector, collecting
from testbed.modelserver import calls, says
from testbed.modelserver import serving as serving_model
from testbed.processes import end_workers
from testbed.steering import finish
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["done"]}}, "required": ["status"]}
ROLE = {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": SCHEMA}
DONE = 'Done.\n\n```json\n{"status": "done"}\n```\n'
SECRET = "hunter22-value"
TELLING = source(
    "telling",
    """
    yield {"null": {}}
    return {"success": True, "message": "told"}
""",
)
ASKING = source(
    "asking",
    """
    yield {"null": {"value": 1}}
    yield {"role": {"name": "asker"}}
    return {"success": True, "message": "m"}
""",
    kind="workflow",
    roles={"asker": ROLE},
    policy={"null": {}, "role": {"tools": ["flow:telling"]}},
)


def test_spans_of_a_killed_worker_fit_to_those_of_the_next(engine: Engine) -> None:
    """The turns of an attempt that a killed worker had sent have their parent: the next worker
    sends the attempt, the step and the thread, each once. With the variable that asks for texts,
    spans have them, without secrets.
    """
    with collecting() as collector:
        gate, call = threading.Event(), calls(("telling", {}))
        with serving_model([call, says("hangs", gate=gate), call, says(DONE)]) as model:
            thread = begin(engine, collector, model.base_url("openai"))
            collector.wait(lambda one: "execute_tool telling" in one.of(thread))
            assert end_workers(engine.store.root) == []
            gate.set()
            assert engine.thread(thread).summary.status == "interrupted"
            early = set(collector.of(thread))
            engine.resume(thread, options=RunOptions(environment=variables(collector)))
            finish(engine, thread)
            collector.wait(lambda one: one.root(thread) is not None)
        spans = collector.of(thread)
    assert early == {"null", "chat tiny", "execute_tool telling"}
    known = {span.span: name for name, span in spans.items()}
    assert len(known) == len(spans)
    assert {name: known.get(span.parent, "") for name, span in spans.items()} == {
        "invoke_workflow asking": "",
        "null": "invoke_workflow asking",
        "invoke_agent asker": "invoke_workflow asking",
        "attempt 1": "invoke_agent asker",
        "chat tiny": "attempt 1",
        "execute_tool telling": "attempt 1",
        "attempt 2": "invoke_agent asker",
        "chat tiny (2)": "attempt 2",
        "execute_tool telling (2)": "attempt 2",
        "chat tiny (3)": "attempt 2",
        "drive": "invoke_workflow asking",
    }
    lost = spans["attempt 1"]
    assert lost.attributes["error.type"] == "interrupted"
    assert spans["invoke_agent asker"].begin_ns <= lost.begin_ns <= lost.end_ns
    assert lost.end_ns <= spans["attempt 2"].begin_ns
    turn, tool = spans["chat tiny (3)"].attributes, spans["execute_tool telling"].attributes
    assert '"finish_reason": "stop"' in turn["gen_ai.output.messages"]
    assert "tool_call_response" in turn["gen_ai.input.messages"]
    assert tool["gen_ai.tool.call.arguments"] == "{}"
    assert '"success": true' in tool["gen_ai.tool.call.result"]
    assert SECRET not in repr(collector.spans)
    assert "tell me secret:KEPT" in turn["gen_ai.input.messages"]


def begin(engine: Engine, collector: Collector, model: str) -> ThreadId:
    """Start a thread with a secret in its prompt, as a command of an agent may show one."""
    engine.store.config_path.write_text(
        json.dumps(
            {
                "agents": {"mine": {"use": "openai", "model": "tiny", "baseUrl": model}},
                "agent": "mine",
                "secrets": {"KEPT": {"env": "MY_KEY"}},
            }
        )
    )
    granted(engine.store, TELLING)
    granted(engine.store, ASKING)
    options = RunOptions(environment=variables(collector))
    return engine.run("asking", prompt=f"tell me {SECRET}", options=options)


def variables(collector: Collector) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "MY_KEY": SECRET,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        **collector.variables,
    }
