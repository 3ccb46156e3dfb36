"""Web flows on a shared store: a worker's browser acts, and its pictures are blobs of the store."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from testbed.processes import end, workers_of
from testbed.webserver import Reply, Seen, serving, text
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.storage.store import Store
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.shared_engine import shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

PATIENCE_S = 240
PAGE = "<title>Start</title><button onclick=\"document.title = 'Pressed'\">Add</button>"
BODY = """
    yield {"browser": {"do": "navigate", "url": input["params"]["url"]}}
    yield {"browser": {"do": "click", "target": {"role": "button", "name": "Add"}}}
    at = yield {"browser": {"do": "address"}}
    return {"success": True, "message": at["title"]}
"""


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_web_flow_runs_on_a_worker_with_a_browser(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Its thread waits for one; it is shown and proved from elsewhere, with its pictures. A flow
    that uses the tabs of one machine is refused.
    """
    address, home = postgres.address(postgres.new_schema()), tmp_path / "worker"
    home.mkdir()

    def answer(_request: Seen) -> Reply:
        return text(PAGE, "text/html; charset=utf-8")

    origin = Engine.open(tmp_path / "origin")
    with serving(answer) as site:
        limits = {"hosts": [site.host], "private": True}
        parameters = {"type": "object", "properties": {"url": {"type": "string"}}}
        for name, more in (("presses", {}), ("tabs", {"profile": "kept"})):
            policy = {"browser": {**limits, **more}}
            flow = source(name, BODY, kind="web", policy=policy, parameters=parameters)
            origin.add(name, flow, accept=lambda _: True)
        with closing(open_store(address, create=True, is_visible=True)) as store:
            backend = DirectoryBackend(origin.store)
            copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        with shared_engine(
            address, origin.store, is_visible=True, report=lambda _reason: None
        ) as engine:
            with pytest.raises(RefusedError, match="tabs and logins of one machine"):
                engine.run("tabs", prompt="", params={"url": f"{site.url}/"})
            thread = engine.run(
                "presses",
                prompt="",
                params={"url": f"{site.url}/"},
                options=RunOptions(screenshots=True),
            )
            words = [sys.executable, "-m", "uncaged_cli", "work", "--store", address]
            variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
            try:
                for offers in ("none", "none,browser"):  # the first one leaves it, and is idle
                    subprocess.run(
                        [*words, "--until-idle", "--offers", offers],
                        env=variables,
                        cwd=home,
                        timeout=PATIENCE_S,
                        check=True,
                    )
                    summary = engine.thread(thread).summary
                    if offers == "none":
                        assert (summary.status, summary.steps) == ("running", 0)
            finally:
                for session in workers_of(home):
                    end([one.pid for one in session.children(recursive=True)] + [session.pid])
                profile = profile_path(Store.open(home), DEFAULT_SESSION)
                shutil.rmtree(profile.parent, ignore_errors=True)
            assert (summary.status, summary.message) == ("completed", "Pressed")
            assert engine.verify(thread).ok
            pictures = [
                one["screenshot"] for one in engine.thread(thread).records if "screenshot" in one
            ]
            assert len(pictures) == 2
            for name in pictures:
                assert BlobDirectory(engine.store.blobs).get(str(name)).startswith(b"\x89PNG")
