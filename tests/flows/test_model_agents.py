"""A model as agent in whole threads on real workers: an issue solved, a kill in the middle, a wrong
key replaced.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.modelserver import ModelServer, Seen, Turn, calls, fails, says, serving
from testbed.processes import workers_of
from testbed.repositories import git
from testbed.steering import finish, settle, wait_for
from testbed.tool_loops import KEY, WIRES
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions
from uncaged_models.settings import Wire
from uncaged_templates.demo import BUGS, ISSUE, write_demo

pytestmark = pytest.mark.slow

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
TEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONDONTWRITEBYTECODE=1 python {' '.join(PYTEST)}"
Step = Turn | Callable[[Seen], Turn]


def block(**meta: object) -> str:
    return f"```json\n{json.dumps(meta)}\n```\n"


def committed(seen: Seen) -> Turn:
    """Reports the commit that the tool's answer names, as a model would."""
    found = re.findall(
        r"committed ([0-9a-f]{40}) on branch ([\w/.-]+)", json.dumps(seen.body["messages"])
    )
    sha, branch = found[-1]
    return says("Committed.\n\n", block(status="committed", branch=branch, commitSha=sha))


EDITS = [("edit", {"path": bug.path, "old": bug.wrong, "new": bug.right}) for bug in BUGS]
PHASE = {"name": "mend", "description": "Three lines are wrong.", "acceptance": "The suite passes."}


def solution(command: str) -> tuple[Step, ...]:
    """Return a model's turns for the demo, whose tests it runs with *command*."""
    done = block(
        status="all-done",
        completedPhases=["mend"],
        filesChanged=[bug.path for bug in BUGS],
        summary="Mended.",
    )
    return (
        calls(("list", {}), ("run", {"command": command})),
        says("Three lines are wrong.\n\n", block(status="planned", phases=[PHASE])),
        calls(*EDITS),
        calls(("run", {"command": command})),
        says("All mended.\n\n", done),
        calls(("run", {"command": f"git diff && {command}"})),
        says("Good.\n\n", block(status="approved", issues=[])),
        calls(("commit", {"message": "Mend fines, pages and renewals"})),
        committed,
    )


SOLUTION = solution(TEST)
QUICK = solution("true")


def playing(
    steps: tuple[Step, ...], before: Mapping[int, Step] | None = None
) -> Callable[[Seen], Turn]:
    """Answers with *steps* in order; a step of *before* comes first, once, at its number, without
    using one up.
    """
    extra = dict(before or {})
    state = {"next": 0}
    lock = threading.Lock()

    def answer(seen: Seen) -> Turn:
        with lock:
            number = state["next"]
            step = extra.pop(number, None)
            if step is None:
                state["next"] += 1
                step = steps[number]
        return step(seen) if callable(step) else step

    return answer


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    write_demo(tmp_path / "demo")
    return tmp_path / "demo"


def options(demo: Path, **variables: str) -> RunOptions:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return RunOptions(
        directory=demo, environment={"PATH": path, "HOME": os.environ["HOME"], **variables}
    )


def configured(store: Store, server: ModelServer, wire: Wire) -> Engine:
    agent = {"use": wire, "baseUrl": server.base_url(wire), "model": "tiny", "key": "secret:MINE"}
    settings = {"agents": {"mine": agent}, "agent": "mine", "secrets": {"MINE": {"env": "MY_KEY"}}}
    store.config_path.write_text(json.dumps(settings))
    return Engine.open(store.root)


def holding(root: Path, text: str) -> list[Path]:
    """The files below *root* that hold a text."""
    return [
        path
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_an_issue_is_solved_on_a_green_branch(full_store: Store, demo: Path, wire: Wire) -> None:
    """Plan, edits by tool, tests in the sandbox, review, commit: nine requests, no repair, and the
    key is nowhere on disk.
    """
    with serving(playing(SOLUTION)) as server:
        engine = configured(full_store, server, wire)
        thread = engine.run(
            "solve-issue", prompt=ISSUE, params={}, options=options(demo, MY_KEY=KEY)
        )
        result = finish(engine, thread)
        workers = workers_of(full_store.root)
        told = [" ".join(worker.cmdline()) + str(worker.environ()) for worker in workers]
        assert len(server.asked) == len(SOLUTION)
        assert all(KEY in seen.headers["authorization"] for seen in server.seen)
        tests = [
            message
            for body in server.asked
            for message in [json.dumps(body["messages"][-1])]
            if " passed in " in message
        ]
        assert len(tests) == 3, tests
        assert "failed" in tests[0]
        assert all("failed" not in one for one in tests[1:])
    assert result["success"] is True
    branch, sha = result["data"]["branch"], result["data"]["commitSha"]
    assert git(demo, "rev-parse", branch).strip() == sha
    subprocess.run(
        ["git", "worktree", "add", "--quiet", "--detach", str(demo.parent / "green"), sha],
        cwd=demo,
        check=True,
    )
    green = subprocess.run(
        [sys.executable, *PYTEST],
        cwd=demo.parent / "green",
        capture_output=True,
        text=True,
        check=False,
    )
    assert green.returncode == 0, green.stdout
    steps = [record for record in engine.thread(thread).records if "role" in record]
    assert [(step["role"], step["by"]) for step in steps] == [
        (role, "mine") for role in ("planner", "coder", "reviewer", "committer")
    ]
    assert [step["usage"]["turns"] for step in steps] == [2, 3, 2, 2]
    assert [step["usage"]["inputTokens"] for step in steps] == [200, 300, 200, 200]
    assert steps[1]["usage"]["model"] == "tiny"
    assert holding(full_store.root, KEY) == []
    assert [text for text in told if KEY in text] == []
    assert engine.verify(thread).ok


def test_a_key_in_the_environment_is_the_agent_and_a_wrong_one_pauses(
    full_store: Store, demo: Path
) -> None:
    """An agent chosen by a key in the environment has its reason in the start record; 401 is a
    void; with another key the thread goes on where it was.
    """

    def checked(seen: Seen) -> Turn:
        return (
            play(seen)
            if "right" in seen.headers["authorization"]
            else fails(401, "authentication_error", "invalid key sk-wrong-123456")
        )

    play = playing(QUICK)
    with serving(checked) as server:
        engine = Engine.open(full_store.root)
        first = options(demo, ANTHROPIC_API_KEY="sk-wrong-123456", ANTHROPIC_BASE_URL=server.url)
        thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=first)
        assert settle(engine, thread)["status"] == "paused"
        view = engine.thread(thread)
        assert view.start["agents"]["default"]["reason"] == "ANTHROPIC_API_KEY is set"
        assert "does not accept the key" in view.summary.message
        assert "sk-wrong-123456" not in json.dumps(view.records)
        second = options(demo, ANTHROPIC_API_KEY="sk-right-123456", ANTHROPIC_BASE_URL=server.url)
        engine.resume(thread, options=second)
        assert finish(engine, thread)["success"] is True
    assert (
        holding(full_store.root, "sk-right-123456")
        == holding(full_store.root, "sk-wrong-123456")
        == []
    )


def test_a_kill_in_the_middle_of_a_stream_is_at_once_and_resume_goes_on(
    full_store: Store, demo: Path
) -> None:
    """The edits of the turn before it are undone, nothing runs on, and the role is asked again."""
    gate = threading.Event()
    slow = says("I will now", gate=gate)
    with serving(playing((*QUICK[:3], *QUICK[2:]), {3: slow})) as server:
        engine = configured(full_store, server, "anthropic")
        thread = engine.run(
            "solve-issue", prompt=ISSUE, params={}, options=options(demo, MY_KEY=KEY)
        )
        wait_for(
            engine,
            thread,
            lambda event: event.kind == "progress" and event.body.get("text") == "I will now",
        )
        edited = full_store.work / thread / BUGS[0].path
        assert BUGS[0].right in edited.read_text()
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"
        asked = len(server.asked)
        engine.resume(thread, options=options(demo, MY_KEY=KEY))
        assert finish(engine, thread)["success"] is True
        assert asked == 4
        # a conversation of its own
        assert "edit" not in json.dumps(server.asked[asked]["messages"])
    records: list[dict[str, Any]] = engine.thread(thread).records
    assert [record["void"] for record in records if "void" in record] == ["killed"]
    assert engine.verify(thread).ok
