"""A server with the route of conversations, as a process of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from testbed.bundles import COUNT, MARKED, granted, source
from testbed.serving import SCRIPT, install_routes, running
from uncaged_dispatcher.wire.client import DispatcherClient, Notice
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of

MODULE = """
from testbed.conversing import WordReader
from uncaged_dispatcher.wire.route import make_application

def route(engine):
    return make_application(engine, WordReader, path="/words", write_s=1.0, drain_s=2.0)
"""
SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")
CHOOSING = source(
    "choosing",
    """
    colour = yield {"ask": {"question": "which?", "choices": ["red", "blue"]}}
    return {"success": True, "message": colour}
""",
    policy={"ask": {}},
)
SHOWN = source(
    "shown",
    """
    yield {"null": {"value": 1}}
    call = {"flow": "count", "params": {"n": 2}}
    return {"success": True, "message": "shown", "choices": [{"id": "a", "label": "count", "call": call}]}
""",
)


@dataclass(frozen=True)
class ServedStore:
    """A store whose conversations a process serves."""

    engine: Engine
    address: str
    process: subprocess.Popen[str]

    def client(self, notice: Notice | None = None) -> DispatcherClient:
        """Connect a client."""
        return DispatcherClient(self.address, token_of(self.engine.store), notice=notice)


@contextmanager
def serving(engine: Engine, site: Path, port: int = 0) -> Iterator[ServedStore]:
    """Serve the store's conversations until the block ends."""
    with running(["-c", SCRIPT, "{}", str(port)], engine, site) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())[0]
        yield ServedStore(engine, f"{address}words", process)


@pytest.fixture
def site(engine: Engine, tmp_path: Path) -> Path:
    """A directory with the route; the store has a few flows."""
    for text in (COUNT, MARKED, SLEEPER, SHOWN, CHOOSING):
        granted(engine.store, text)
    return install_routes(tmp_path / "site", MODULE, {"words": "mine:route"})


@pytest.fixture
def served(engine: Engine, site: Path) -> Iterator[ServedStore]:
    with serving(engine, site) as found:
        yield found
