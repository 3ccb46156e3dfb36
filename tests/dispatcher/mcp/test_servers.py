"""Servers as packs on real processes: when they are listed, what the registry has then, and what a
server that fails costs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testbed.bundles import COUNT
from testbed.mcp_server import FORECAST, SET_STATION
from uncaged_dispatcher.mcp.client import McpProblem
from uncaged_dispatcher.mcp.listings import mark_outdated, remove_listing
from uncaged_dispatcher.mcp.opening import ServerAccess
from uncaged_dispatcher.mcp.servers import McpPacks
from uncaged_dispatcher.readings.pack_management import PackManager
from uncaged_dispatcher.translation.catalog import Catalog
from uncaged_engine.api import Engine

from .conftest import SECRET, Configure

pytestmark = pytest.mark.slow


def starts(station: Path) -> int:
    path = station / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


def confirms(engine: Engine) -> dict[str, bool]:
    """The flows of the weather server, and whether they need consent."""
    flows = engine.registry.read().flows.values()
    return {flow.name: flow.confirm for flow in flows if flow.source == "mcp:weather"}


def test_a_list_is_kept_until_it_may_have_changed(
    engine: Engine, configure: Configure, station: Path
) -> None:
    """A second look starts no server; other settings, a reported change and a person's wish do."""
    configure(weather={})
    assert McpPacks(engine).bring_in() and not McpPacks(engine).bring_in()
    assert starts(station) == 1
    assert confirms(engine) == {"weather-get-forecast": True, "weather-set-station": True}
    # as after a crash before the listing was written
    remove_listing(engine.store, "weather")
    before = engine.registry.state()
    assert McpPacks(engine).bring_in() and engine.registry.state() == before
    configure(weather={"trusted": ["get_forecast"]})
    McpPacks(engine).bring_in()
    assert confirms(engine) == {"weather-get-forecast": False, "weather-set-station": True}
    (station / "tools.json").write_text(json.dumps([{**SET_STATION, "description": "Other."}]))
    mark_outdated(engine.store, "weather")
    McpPacks(engine).bring_in()
    assert confirms(engine) == {"weather-set-station": True}
    assert PackManager(engine).report("weather", anew=True).flows == ("weather-set-station",)
    assert starts(station) == 5


def test_a_model_is_offered_the_tools_of_a_server(engine: Engine, configure: Configure) -> None:
    """The catalogue finds a tool by its description, with the schema of its arguments."""
    configure(weather={})
    McpPacks(engine).bring_in()
    [entry] = Catalog(engine.store).search("what will the weather be", limit=1)
    assert (entry.flow, entry.pack) == ("weather-get-forecast", "weather")
    assert entry.parameters == FORECAST["inputSchema"]


def test_a_new_version_of_a_tool_needs_consent_again(
    engine: Engine, configure: Configure, station: Path
) -> None:
    """The mark that a person took off stays off for the version that the person knew."""
    configure(weather={})
    servers = McpPacks(engine)
    servers.bring_in()
    engine.registry.set_confirm("weather-set-station", False)
    servers.bring_in(anew=True)
    assert confirms(engine)["weather-set-station"] is False
    changed = {**SET_STATION, "description": "Moves the station, and deletes the archive."}
    (station / "tools.json").write_text(json.dumps([FORECAST, changed]))
    servers.bring_in(anew=True)
    assert confirms(engine)["weather-set-station"] is True


def test_nothing_of_others_is_replaced(engine: Engine, configure: Configure) -> None:
    """A flow of a person keeps its name, a shipped pack its own; the reason is in the report."""
    own = engine.add("weather-set-station", COUNT, accept=bool).hash
    configure(weather={}, git={})
    McpPacks(engine).bring_in()
    kept = engine.registry.flow("weather-set-station")
    assert kept is not None and kept.hash == own
    manager = PackManager(engine)
    assert "there is another flow" in manager.report("weather").problems[0]
    assert "comes from uncaged-workflow" in manager.report("git").problems[0]
    assert not [name for name in engine.registry.names() if name.startswith("git-get")]


def test_a_removed_flow_or_server_stays_away(engine: Engine, configure: Configure) -> None:
    """What a person removed returns only when asked for; a server without settings takes its flows
    with it.
    """
    configure(weather={})
    McpPacks(engine).bring_in()
    engine.registry.remove("weather-set-station")
    mark_outdated(engine.store, "weather")
    McpPacks(engine).bring_in()
    assert list(confirms(engine)) == ["weather-get-forecast"]
    McpPacks(engine).bring_in(anew=True)
    assert len(confirms(engine)) == 2
    configure()
    reports, _ = PackManager(engine).reports()
    assert confirms(engine) == {}
    assert "weather" not in [report.pack.name for report in reports]


def test_a_disabled_server_is_never_started(
    engine: Engine, configure: Configure, station: Path
) -> None:
    """A pack can be disabled before its tools are known."""
    configure(weather={})
    manager = PackManager(engine)
    manager.set_enabled("weather", False)
    manager.reports()
    assert starts(station) == 0
    manager.set_enabled("weather", True)
    assert len(manager.report("weather").flows) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("hang", "did not answer in time"),
        ("die", "ended without an answer: no licence for secret:WEATHER"),
        ("nonsense", "something that is no message: 'Listening on port 80 …'"),
        ("flood", "sends more than 8 MiB"),
        ("chatter", "sent 10000 messages"),
    ],
)
def test_a_failing_server_hinders_no_other(
    engine: Engine, configure: Configure, station: Path, fault: str, words: str
) -> None:
    """Its report has the reason, without secrets, within its limit; the next look waits."""
    (station / "mode").write_text(f"list-{fault}")
    good = station.parent / "good"
    good.mkdir()
    (good / "tools.json").write_text((station / "tools.json").read_text())
    config = {"timeoutSeconds": 1.5 if fault == "hang" else 100}
    configure(weather=config, other={"args": [*_args(engine, configure), str(good)]})
    begin = time.monotonic()
    McpPacks(engine).bring_in()
    assert not McpPacks(engine).bring_in()
    assert time.monotonic() - begin < 60
    manager = PackManager(engine)
    [problem] = manager.report("weather").problems
    assert words in problem and SECRET not in problem
    assert len(manager.report("other").flows) == 2
    for pid in (station / "starts").read_text().split():
        assert not Path("/proc", pid).exists()


def _args(engine: Engine, configure: Configure) -> list[str]:
    """The arguments of the weather server but for its directory."""
    configure(weather={})
    return [engine.config.mcp_servers["weather"].command[1]]


def test_a_missing_program_or_secret_names_the_next_step(
    engine: Engine, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says what to install or to set."""
    configure(weather={"command": "no-such-program"})
    monkeypatch.delenv("WEATHER")
    assert "WEATHER, which is not set" in PackManager(engine).report("weather").problems[0]
    monkeypatch.setenv("WEATHER", SECRET)
    problem = PackManager(engine).report("weather", anew=True).problems[0]
    assert "no such program on PATH" in problem and "mcpServers.weather" in problem


def test_a_session_refuses_requests_of_the_server(
    engine: Engine, configure: Configure, station: Path
) -> None:
    """A server that asks for a model's answer gets an error; its own answer is still read, an error
    too.
    """
    configure(weather={})
    access = ServerAccess(config=engine.config, environment={"WEATHER": SECRET}, directory=station)
    with access.open("weather") as (client, redact):
        result = redact(client.call("get_forecast", {"city": "Oslo"}))
    assert isinstance(result, dict)
    assert result["content"][1] == {"type": "text", "text": "key secret:WEATHER"}
    with (
        pytest.raises(McpProblem, match="refuses tools/call: no tool"),
        access.open("weather") as (client, redact),
    ):
        client.call("no-such", {})


def test_reading_a_sentence_loads_no_client() -> None:
    """The reader of conversations imports neither this package nor the models of config.yaml."""
    code = (
        "import sys, uncaged_dispatcher.conversations.reader, uncaged_dispatcher.conversations.execution\n"
        "print({'uncaged_dispatcher.mcp.servers', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"
