"""Tools of a configured MCP server, as flows on real workers and through the whole command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed import mcp_server
from testbed.mcp_server import FORECAST, SET_STATION
from testbed.processes import await_end, workers_of
from testbed.steering import intent_of, settle, wait_for, written
from uncaged_bundles.ids import ThreadId
from uncaged_dispatcher.mcp.listings import read_listing
from uncaged_dispatcher.mcp.servers import McpPacks
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

SECRET = "sesame-4711-sesame"


@pytest.fixture
def station(engine: Engine, tmp_path: Path) -> Path:
    """The directory of a weather server that the store has configured."""
    directory = tmp_path / "station"
    directory.mkdir()
    (directory / "tools.json").write_text(json.dumps([FORECAST, SET_STATION]))
    server = {
        "command": sys.executable,
        "args": [mcp_server.__file__, str(directory)],
        "env": {"WEATHER_KEY": "secret:WEATHER"},
        "trusted": ["get_forecast"],
        "timeoutSeconds": 20,
    }
    config = {"mcpServers": {"weather": server}, "secrets": {"WEATHER": {"env": "WEATHER"}}}
    engine.store.config_path.write_text(json.dumps(config))
    return directory


def begun(engine: Engine, flow: str, params: Mapping[str, object]) -> ThreadId:
    environment = {**os.environ, "WEATHER": SECRET}
    McpPacks(engine, environment).bring_in()
    return engine.run(flow, prompt="", params=params, options=RunOptions(environment=environment))


def ended(engine: Engine, flow: str, params: Mapping[str, object]) -> tuple[str, Any]:
    thread = begun(engine, flow, params)
    settle(engine, thread)
    view = engine.thread(thread)
    return view.summary.status, (view.end or {}).get("result") or view.summary.message


def starts(station: Path) -> list[str]:
    path = station / "starts"
    return path.read_text().split() if path.exists() else []


def test_a_call_is_a_thread_without_secrets(engine: Engine, station: Path) -> None:
    """The result is the tool's, cleaned; no file of the store has the secret that the tool
    returned.
    """
    status, result = ended(engine, "weather-get-forecast", {"city": "Oslo", "days": "3"})
    assert status == "completed"
    assert result == {
        "success": True,
        "message": "rain in Oslo key secret:WEATHER",
        "data": {"city": "Oslo", "rain": True},
        "display": "rain in Oslo \nkey secret:WEATHER",
    }
    assert (station / "calls").read_text() == (
        '{"name": "get_forecast", "arguments": {"city": "Oslo", "days": 3}}\n'
    )
    status, result = ended(engine, "weather-set-station", {"place": "roof"})
    assert (status, result["success"], result["message"]) == ("completed", False, "refused roof")
    files = [path for path in engine.store.root.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("die", "ended without an answer: no licence for secret:WEATHER"),
        ("nonsense", "something that is no message"),
        ("flood", "sends more than 8 MiB"),
    ],
)
def test_a_server_that_fails_in_a_call_fails_its_thread(
    engine: Engine, station: Path, fault: str, words: str
) -> None:
    """The thread ends with the reason, and no process is left."""
    (station / "mode").write_text(fault)
    status, message = ended(engine, "weather-get-forecast", {"city": "Oslo"})
    assert status == "failed"
    assert words in message and SECRET not in message
    assert not [pid for pid in starts(station) if Path("/proc", pid).exists()]


def test_a_killed_call_ends_its_server(engine: Engine, station: Path) -> None:
    """A thread whose server hangs is killed at once; the server's process ends with it."""
    (station / "mode").write_text("hang")
    thread = begun(engine, "weather-get-forecast", {"city": "Oslo"})
    wait_for(engine, thread, intent_of(1))
    engine.kill(thread)
    settle(engine, thread)
    assert engine.thread(thread).summary.status == "killed"
    for pid in starts(station):
        assert await_end(int(pid))


def test_a_killed_worker_leaves_a_decision_and_no_server(engine: Engine, station: Path) -> None:
    """A call that a crash left open is made again only if a person says so, or if the tool is
    trusted and changes nothing; a server that hung is ended before.
    """
    (station / "mode").write_text("hang")
    os.mkfifo(station / "hung")
    open_calls = {
        "weather-set-station": begun(engine, "weather-set-station", {"place": "roof"}),
        "weather-get-forecast": begun(engine, "weather-get-forecast", {"city": "Oslo"}),
    }
    hung: list[str] = []
    while len(hung) < 2:  # blocks until a server hangs
        hung += (station / "hung").read_text().split()
    for worker in workers_of(engine.store.root):
        worker.kill()
        worker.wait()
    statuses = {name: engine.thread(thread).summary.status for name, thread in open_calls.items()}
    assert statuses == {"weather-set-station": "unknown", "weather-get-forecast": "interrupted"}
    (station / "mode").unlink()
    environment = {**os.environ, "WEATHER": SECRET}
    thread = open_calls["weather-get-forecast"]
    engine.resume(thread, options=RunOptions(environment=environment))
    settle(engine, thread)
    assert engine.thread(thread).summary.status == "completed"
    thread = open_calls["weather-set-station"]
    engine.resume(thread, redo=True, options=RunOptions(environment=environment))
    settle(engine, thread)
    assert engine.thread(thread).summary.status == "completed"
    assert len((station / "calls").read_text().splitlines()) == 2
    assert all(await_end(int(pid)) for pid in hung)


def test_a_reported_change_is_noted(engine: Engine, station: Path) -> None:
    """A server that says in a call that its tools have changed is asked for them again later."""
    (station / "mode").write_text("changed")
    assert ended(engine, "weather-get-forecast", {"city": "Oslo"})[0] == "completed"
    listing = read_listing(engine.store, "weather")
    assert listing is not None and listing.outdated


def test_a_bundle_calls_the_tools_of_its_policy_only(engine: Engine, station: Path) -> None:
    """Another tool of the same server is refused, and the server is not started for it."""
    descriptor = {
        "contract": 1,
        "name": "sneaky",
        "description": "Calls another tool.",
        "kind": "task",
        "policy": {"mcp": {"tools": ["weather/get_forecast"]}},
    }
    body = '{"mcp": {"server": "weather", "tool": "setStation"}}'
    source = f"descriptor = {descriptor!r}\n\n\ndef run(input, options):\n    yield {body}\n"
    engine.add("sneaky", source.encode(), accept=bool)
    thread = engine.run("sneaky", prompt="")
    settle(engine, thread)
    [error] = [
        line["error"] for line in written(engine, thread) if "error" in line and "seq" in line
    ]
    assert error["kind"] == "policy" and "weather/setStation" in error["message"]
    assert starts(station) == []


def test_sentences_reach_the_tools_of_a_server(engine: Engine, station: Path) -> None:
    """No server starts for a sentence of another pack; a tool that is not trusted needs consent; a
    disabled pack names the command that enables it.
    """

    def do(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "uncaged_cli", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={
                **os.environ,
                "UNCAGED_WORKFLOW_HOME": str(engine.store.root),
                "WEATHER": SECRET,
            },
            cwd=station,
        )

    assert "understood: list-files" in do("do", "list the files").stderr
    assert starts(station) == []
    done = do("do", "run weather get forecast Oslo")
    assert done.returncode == 0 and "rain in Oslo" in done.stdout
    assert len(starts(station)) == 2
    refused = do("do", "run weather set station roof")
    assert refused.returncode != 0 and "add --yes" in refused.stderr
    assert len((station / "calls").read_text().splitlines()) == 1
    assert "run weather get forecast CITY [DAYS]" in do("do", "what can you do").stdout
    assert do("pack", "disable", "weather").returncode == 0
    disabled = do("do", "run weather get forecast Oslo")
    assert "uncaged-workflow pack enable weather" in disabled.stderr
    assert len(starts(station)) == 2
