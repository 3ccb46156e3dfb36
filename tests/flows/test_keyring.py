"""A key that only the system's keyring holds reaches the endpoint of a model, and no file of the
store.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.bundles import granted, source
from testbed.keyrings import fill, leading_to
from testbed.modelserver import says, serving
from testbed.steering import finish
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

PLANTED = "sk-planted-in-the-keyring"
ASK = source(
    "asked",
    '    answer = yield {"llm": {"prompt": "Say it."}}\n    return {"success": True, "message": answer}\n',
    policy={"llm": {}},
)


def test_a_key_goes_from_the_keyring_to_the_endpoint_alone(engine: Engine, tmp_path: Path) -> None:
    """The answer repeats it, as a bad endpoint might; `keys list` names the source, and has no
    value.
    """
    home = tmp_path / "home"
    home.mkdir()
    fill(home, "models", "me", PLANTED)
    granted(engine.store, ASK)
    with serving([says(f"Your key is {PLANTED}.")]) as server:
        engine.store.config_path.write_text(
            f"models: {{mine: {{use: openai, baseUrl: '{server.base_url('openai')}', model: tiny, key: secret:WORK}}}}\n"
            "model: mine\nsecrets: {WORK: {keyring: models/me}}\n"
        )
        thread = engine.run("asked", prompt="", options=RunOptions(environment=leading_to(home)))
        assert finish(engine, thread)["message"] == "Your key is secret:WORK."
        assert server.seen[0].headers["authorization"] == f"Bearer {PLANTED}"
    files = [path for path in engine.store.root.rglob("*") if path.is_file()]
    assert [path for path in files if PLANTED.encode() in path.read_bytes()] == []
    environment = {
        **os.environ,
        **leading_to(home),
        "UNCAGED_WORKFLOW_HOME": str(engine.store.root),
    }
    command = [sys.executable, "-m", "uncaged_cli", "keys", "list"]
    shown = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert shown.splitlines()[1].split(maxsplit=1) == ["WORK", "the system keyring, models/me"]
    assert PLANTED not in shown
