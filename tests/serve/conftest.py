"""Servers as processes of their own, with routes of a distribution that is installed in a temporary
directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of

SCRIPT = """
import json, sys
from uncaged_engine.api import Engine
from uncaged_serve.server import ServerTimes, serve

engine = Engine.open()
serve(
    engine,
    0,
    ready=lambda serving: print(
        json.dumps([serving.address, serving.routes, serving.problems]), flush=True
    ),
    report=lambda text: print(text, flush=True),
    times=ServerTimes(**json.loads(sys.argv[1])),
)
print("ended", flush=True)
"""

Distribution = Callable[[str, Mapping[str, str]], Path]


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    """Install a distribution with one module and these routes; return the directory for the module
    path.
    """

    def install(module: str, routes: Mapping[str, str]) -> Path:
        site = tmp_path / "site"
        info = site / "mine-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "mine.py").write_text(module)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        entries = "".join(f"{name} = {reference}\n" for name, reference in routes.items())
        (info / "entry_points.txt").write_text(f"[uncaged_workflow.routes]\n{entries}")
        return site

    return install


def environment(engine: Engine, site: Path | None = None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "XDG_RUNTIME_DIR")}
    more = {"PYTHONPATH": str(site)} if site is not None else {}
    return {**kept, "UNCAGED_WORKFLOW_HOME": str(engine.store.root), **more}


@contextmanager
def running(
    words: list[str], engine: Engine, site: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a server as a process, and end it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *words],
        env=environment(engine, site),
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as server:
        try:
            yield server
        finally:
            server.kill()
            server.communicate(timeout=20)


def authorization(engine: Engine) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_of(engine.store)}"}
