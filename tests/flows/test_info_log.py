"""Every thread has a debug log with what worker, sandbox and agents reported."""

from __future__ import annotations

import json
import os
import re

import pytest
from testbed.bundles import COUNT, granted, source
from testbed.steering import finish, settle
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["done"]}}, "required": ["status"]}
ASKING = source(
    "asking",
    """
    step = yield {"role": {"name": "teller"}}
    script = yield {"script": {"language": "bash", "body": "exit 3"}}
    return {"success": True, "message": step["meta"]["status"]}
""",
    kind="workflow",
    roles={
        "teller": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": SCHEMA}
    },
    policy={"role": {}, "script": {}},
)
TELLER = """
for n in $(seq 2000); do echo "line $n of many" >&2; done
echo "the key is $KEY" >&2
printf '```json\\n{"status": "done"}\\n```\\n'
"""


def log_of(engine: Engine, thread: ThreadId) -> list[dict[str, object]]:
    path = engine.store.info_path(engine.thread(thread).summary.hash, thread)
    assert path.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_thread_without_agents_has_a_log(engine: Engine) -> None:
    """The log has the worker, the sandbox and the state in which the worker left the thread."""
    granted(engine.store, COUNT)
    thread = engine.run("count", prompt="")
    finish(engine, thread)
    log = log_of(engine, thread)
    assert all(
        set(line) == {"tag", "content", "timestamp"}
        and re.fullmatch("[0-9A-Z]{8}", str(line["tag"]))
        for line in log
    )
    said = [str(line["content"]) for line in log]
    assert re.fullmatch(r"worker \d+ of engine \S+ takes it up, 0 steps done", said[0])
    assert f"sandbox: {engine.thread(thread).start['sandbox']}" in said
    assert said[-1] == "left: completed"


def test_what_an_agent_and_a_script_reported_is_in_the_log(engine: Engine) -> None:
    """Standard error of an agent up to its end, without the secret that it shows; and how a script
    in its sandbox ended.
    """
    agents = {
        "teller": {"use": "command", "argv": ["sh", "-c", TELLER], "env": {"KEY": "secret:KEPT"}}
    }
    engine.store.config_path.write_text(
        json.dumps({"agents": agents, "agent": "teller", "secrets": {"KEPT": {"env": "MY_KEY"}}})
    )
    granted(engine.store, ASKING)
    options = RunOptions(environment={"PATH": os.environ["PATH"], "MY_KEY": "hunter22-value"})
    thread = engine.run("asking", prompt="", options=options)
    settle(engine, thread)
    said = [str(line["content"]) for line in log_of(engine, thread)]
    assert "hunter22" not in "".join(said)
    [stderr] = [text for text in said if "stderr: " in text]
    assert stderr.startswith("teller: stderr: line 1 of many")
    assert stderr.splitlines()[-1].startswith("the key is ")
    assert len(stderr) < 5000
    assert any(re.fullmatch(rf"script {thread}/2: \w+, exit code 3, \d+ ms", text) for text in said)
