"""A directory for the weather server of these tests, and a store that has it configured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed import mcp_server
from testbed.mcp_server import FORECAST, SET_STATION
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

SECRET = "sesame-4711-sesame"


@pytest.fixture
def station(tmp_path: Path) -> Path:
    """The directory of the weather server, with two tools."""
    directory = tmp_path / "station"
    directory.mkdir()
    (directory / "tools.json").write_text(json.dumps([FORECAST, SET_STATION]))
    return directory


@pytest.fixture
def engine(store: Store) -> Engine:
    return Engine(store)


Configure = Callable[..., None]


@pytest.fixture
def configure(engine: Engine, station: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Write a config with the weather server under these names, each with more settings."""
    monkeypatch.setenv("WEATHER", SECRET)

    def write(**servers: dict[str, object]) -> None:
        entries = {
            name: {
                "command": sys.executable,
                "args": [mcp_server.__file__, str(station)],
                "env": {"WEATHER_KEY": "secret:WEATHER"},
                **more,
            }
            for name, more in servers.items()
        }
        document = {"mcpServers": entries, "secrets": {"WEATHER": {"env": "WEATHER"}}}
        engine.store.config_path.write_text(json.dumps(document))

    return write
