"""Flows made of threads of a shared store: read and proved on any machine, and added for all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.cluster_commands import told, worker
from testbed.modelserver import Seen, Turn, calls, says, serving
from testbed.postgres import PostgresServer
from testbed.processes import end, workers_of
from testbed.repositories import make_repository
from testbed.roles import ROLE
from testbed.webserver import serving as serving_web
from testbed.webserver import text
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_bundles.storage.store import Store
from uncaged_cli.entry import STORE_VARIABLE

pytestmark = pytest.mark.slow

LOG = "".join(f"{'ERROR' if line % 3 == 0 else 'INFO'} line {line}\n" for line in range(12))
PAGE = "<title>Start</title><button>Add</button><button>More</button>"
WORKS = """
    step = yield {"role": {"name": "worker"}}
    return {"success": True, "message": "counted", "data": None}
"""
CHARTS = """
    yield {"now": {}}
    return {"success": True, "message": "found", "data": {"songs": [f"{input['params']['genre']} song"]}}
"""
LISTS = """
    charts = yield {"flow": {"name": "charts", "params": {"genre": input["params"]["genre"]}}}
    again = yield {"flow": {"name": "charts", "params": {"genre": charts["data"]["songs"][0]}}}
    return {"success": True, "message": "listed", "data": again["data"]}
"""
GENRE = {"type": "object", "properties": {"genre": {"type": "string"}}}
FLOWS = {
    "works": source(
        "works", WORKS, roles={"worker": ROLE}, policy={"role": {"workspace": "write"}}
    ),
    "charts": source("charts", CHARTS, parameters=GENRE, policy={"now": {}}),
    "lists": source("lists", LISTS, parameters=GENRE, policy={"flow": {"names": ["charts"]}}),
}


def answer(asked: Seen) -> Turn:
    """Count by a command, then say so."""
    if "count.txt" not in json.dumps(asked.body):
        return calls(("run", {"command": "grep -c ERROR app.log > count.txt && cat count.txt"}))
    return says("app.log has 4 lines.\n\n", '```json\n{"status": "done"}\n```\n')


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A store with a worker, and the directories of machines."""

    directory: Path
    repository: Path
    patch: pytest.MonkeyPatch

    def at(self, machine: str) -> None:
        """Let the next commands be those of a machine."""
        self.patch.setenv("UNCAGED_WORKFLOW_HOME", str(self.directory / machine))


@pytest.fixture(scope="module")
def scene(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("captures")
    address = postgres.address(postgres.new_schema())
    with ExitStack() as stack:
        server = stack.enter_context(serving(answer))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(STORE_VARIABLE, address)
        patch.chdir(directory)
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = json.dumps({"agents": {"mine": agent}, "agent": "mine"})
        repository = make_repository(directory / "repository", {"app.log": LOG})
        scene = Scene(directory=directory, repository=repository, patch=patch)
        scene.at("first")
        (directory / "first").mkdir()
        (directory / "first" / "config.yaml").write_text(config)
        for name, bundle in FLOWS.items():
            (directory / f"{name}.py").write_bytes(bundle)
            added = told("add", name, f"{name}.py", "--accept")
            assert added.code == 0, added.err
        stack.enter_context(worker(address, directory / "worker", config))
        yield scene


def captured(*words: str) -> Mapping[str, Any]:
    done = told("capture", *words, "--accept", "--json")
    assert done.code == 0, done.err
    found: Mapping[str, Any] = done.document
    return found


def test_commands_of_a_worker_are_captured_on_another_machine(scene: Scene) -> None:
    """The proof has the files that the agent found, from the store. What the person is asked binds
    all workers.
    """
    scene.at("first")
    prompt = "Count the lines with ERROR in app.log"
    words = ("--prompt", prompt, "--workspace", str(scene.repository))
    learned = told("run", "works", *words, "--learn", "learned")
    assert learned.code == 1 and "on every worker of postgresql://" in learned.err, learned.err
    scene.at("second")
    found = captured("latest", "--name", "counts")
    assert found["proof"] == {"state": "proved"}, found
    assert captured("latest", "--as", "workflow", "--name", "path")["proof"]["state"] == "proved"
    scene.at("first")
    listed = told("list").out
    assert "counts" in listed and "path" in listed


def test_calls_of_flows_are_captured_with_the_results_of_their_threads(scene: Scene) -> None:
    """The proof and a run with other values call the flows of the store, and leave no thread."""
    scene.at("first")
    assert told("run", "lists", "--param", "genre=blues", "--prompt", "list blues").code == 0
    threads = len(told("threads", "--json").document)
    scene.at("second")
    found = captured("latest", "--name", "songs", "--example", "genre=jazz")
    assert (found["proof"], found["steps"]) == ({"state": "proved"}, 2)
    assert found["otherValues"]["state"] == "succeeded"
    assert len(told("threads", "--json").document) == threads
    scene.at("first")
    done = told("run", "songs", "--param", "genre=soul", "--json")
    assert json.loads(done.out.splitlines()[-1])["thread"]["status"] == "completed", done.err


@pytest.mark.needs("chromium")
def test_a_recording_is_proved_here_and_added_for_all_machines(scene: Scene) -> None:
    """In the browser of the machine where the command runs."""
    scene.at("second")
    home = scene.directory / "second"
    with serving_web(lambda _asked: text(PAGE, "text/html; charset=utf-8")) as site:
        click = {"type": "click", "target": "main", "offsetX": 1, "offsetY": 1}
        steps = [
            {"type": "navigate", "url": f"{site.url}/"},
            *({**click, "selectors": [[f"aria/{name}"]]} for name in ("Add", "More")),
        ]
        (scene.directory / "clicks.json").write_text(
            json.dumps({"title": "clicks", "steps": steps})
        )
        try:
            done = told("record", "clicks", "--import", "clicks.json", "--accept")
        finally:
            for session in workers_of(home):
                end([one.pid for one in session.children(recursive=True)] + [session.pid])
            profile = profile_path(Store.open(home), DEFAULT_SESSION)
            shutil.rmtree(profile.parent, ignore_errors=True)
    assert done.code == 0 and "proved: a second run did all steps" in done.out, done.err
    assert "on every worker of postgresql://" in done.err
    scene.at("first")
    assert "clicks" in told("list").out
