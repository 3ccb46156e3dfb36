"""Servers of routes as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of

TESTS = Path(__file__).parent.parent
SCRIPT = """
import json, sys
from uncaged_engine.api import Engine
from uncaged_serve.server import Place, ServerTimes, serve

engine = Engine.open()
serve(
    engine,
    Place(port=int(sys.argv[2]) if len(sys.argv) > 2 else 0),
    ready=lambda serving: print(
        json.dumps([serving.address, serving.routes, serving.problems]), flush=True
    ),
    report=lambda text: print(text, flush=True),
    times=ServerTimes(**json.loads(sys.argv[1])),
)
print("ended", flush=True)
"""


def install_routes(site: Path, module: str, routes: Mapping[str, str]) -> Path:
    """Install a distribution with the module `mine` and these routes in a directory; return it."""
    info = site / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "mine.py").write_text(module)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entries = "".join(f"{name} = {reference}\n" for name, reference in routes.items())
    (info / "entry_points.txt").write_text(f"[uncaged_workflow.routes]\n{entries}")
    return site


def environment(engine: Engine, site: Path | None = None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "XDG_RUNTIME_DIR")}
    places = [str(TESTS), *([str(site)] if site is not None else [])]
    more = {"PYTHONPATH": os.pathsep.join(places)}
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
