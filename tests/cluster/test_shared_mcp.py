"""Calls of MCP servers in threads of a shared store: a worker that has the server performs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testbed import mcp_server
from testbed.bundles import source
from testbed.cluster_commands import told
from testbed.foreground import environment
from testbed.mcp_server import FORECAST
from testbed.postgres import PostgresServer
from uncaged_cli.entry import STORE_VARIABLE

pytestmark = pytest.mark.slow

PATIENCE_S = 120
BODY = """
    found = yield {"mcp": {"server": "weather", "tool": "get_forecast", "arguments": {"city": "Oslo"}}}
    return {"success": True, "message": "asked", "data": found["structured"]}
"""


def test_a_call_waits_for_a_worker_whose_config_has_the_server(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one leaves its thread to it."""
    address = postgres.address(postgres.new_schema())
    monkeypatch.setenv(STORE_VARIABLE, address)
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path / "person"))
    policy = {"mcp": {"tools": ["weather/get_forecast"]}}
    file = tmp_path / "forecast.py"
    file.write_bytes(source("forecast", BODY, policy=policy))
    assert told("add", "forecast", str(file), "--accept").code == 0
    thread = told("run", "forecast", "--detach").out.strip()

    def work(name: str, config: object) -> None:
        home = tmp_path / name
        home.mkdir()
        (home / "config.yaml").write_text(json.dumps(config))
        words = [sys.executable, "-m", "uncaged_cli", "work", "--until-idle", "--store", address]
        variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
        subprocess.run(words, env=variables, cwd=home, timeout=PATIENCE_S, check=True)

    work("without", {})
    [waiting] = told("ps", "--json").document
    assert (waiting["threadId"], waiting["steps"]) == (thread, 0)
    (tmp_path / "tools.json").write_text(json.dumps([FORECAST]))
    command = [mcp_server.__file__, str(tmp_path)]
    work("with", {"mcpServers": {"weather": {"command": sys.executable, "args": command}}})
    found = told("thread", thread, "--json").document
    assert (found["status"], found["message"]) == ("completed", "asked")
    assert json.loads((tmp_path / "calls").read_text())["arguments"] == {"city": "Oslo"}
