"""A coding agent in whole threads on real workers: an issue solved, sessions that go on, a kill in
the middle of its words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from testbed.bundles import granted, source
from testbed.modelserver import says, serving
from testbed.repositories import git
from testbed.steering import finish, settle, wait_for
from testbed.turns import argv
from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.processes.leftovers import MARK
from uncaged_templates.demo import BUGS, ISSUE, write_demo

pytestmark = pytest.mark.slow

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
ROLES = ["planner", "coder", "reviewer", "coder", "reviewer", "committer"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    write_demo(tmp_path / "demo")
    return tmp_path / "demo"


@pytest.fixture
def engine(full_store: Store, tmp_path: Path) -> Engine:
    edits = [{"path": bug.path, "old": bug.wrong, "new": bug.right} for bug in BUGS]
    (tmp_path / "edits.json").write_text(json.dumps(edits))
    agent = {"use": "acp", "argv": argv("roles", str(tmp_path / "edits.json")), "graceSeconds": 2}
    full_store.config_path.write_text(json.dumps({"agents": {"tester": agent}, "agent": "tester"}))
    return Engine.open(full_store.root)


def options(demo: Path, home: Path) -> RunOptions:
    return RunOptions(directory=demo, environment={"PATH": os.environ["PATH"], "HOME": str(home)})


def marked(thread: str) -> list[str]:
    """Return the command lines of a thread's agents that still run."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if (
                process.environ().get(MARK, "").startswith(thread)
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(" ".join(process.cmdline()))
    return found


def role_steps(engine: Engine, thread: str) -> list[dict[str, Any]]:
    return [
        dict(record)
        for record in engine.thread(thread).records
        if "role" in record and "meta" in record
    ]


def is_green(demo: Path, sha: str) -> bool:
    """Whether the demo's own tests pass at a commit."""
    place = demo.parent / "green"
    subprocess.run(
        ["git", "worktree", "add", "--quiet", "--detach", str(place), sha], cwd=demo, check=True
    )
    return (
        subprocess.run(
            [sys.executable, *PYTEST], cwd=place, capture_output=True, check=False
        ).returncode
        == 0
    )


def test_an_issue_is_solved_on_a_green_branch(engine: Engine, demo: Path, home: Path) -> None:
    """Plan, half a fix, a rejection, the other half, approval, commit: each role has one session,
    whichever step it is in.

    The files are changed through us, the commit is made in a terminal of ours, and a fork of the
    thread begins sessions of its own.
    """
    thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=options(demo, home))
    result = finish(engine, thread)
    assert result["success"] is True
    branch, sha = result["data"]["branch"], result["data"]["commitSha"]
    assert git(demo, "rev-parse", branch).strip() == sha
    assert is_green(demo, sha)
    steps = role_steps(engine, thread)
    assert [step["role"] for step in steps] == ROLES
    sessions = {
        step["role"]: {one["session"] for one in steps if one["role"] == step["role"]}
        for step in steps
    }
    assert sorted(len(found) for found in sessions.values()) == [1, 1, 1, 1]
    assert len(set.union(*sessions.values())) == 4
    assert steps[0]["usage"] == {
        "inputTokens": 130,
        "outputTokens": 50,
        "cachedTokens": 30,
        "cost": 0.01,
    }
    log = engine.store.info_path(engine.thread(thread).summary.hash, thread).read_text()
    assert "tester: agent test-agent 7" in log
    assert f"tester: edit: Write {BUGS[0].path}" in log
    assert engine.verify(thread).ok
    assert marked(thread) == []
    fork = engine.fork(thread, cut=Cut(at=3), options=options(demo, home))
    finish(engine, fork)
    assert role_steps(engine, fork)[3]["session"] not in set.union(*sessions.values())


def test_each_role_may_have_an_agent_of_its_own(
    engine: Engine, demo: Path, home: Path, tmp_path: Path
) -> None:
    """A model plans and reviews, a command fixes, a coding agent commits: the same green branch,
    and the record names the agent of each step.
    """
    edits = "".join(
        f"p = Path({bug.path!r}); p.write_text(p.read_text().replace({bug.wrong!r}, {bug.right!r}))\n"
        for bug in BUGS
    )
    done = {
        "status": "all-done",
        "completedPhases": ["mend"],
        "filesChanged": [bug.path for bug in BUGS],
        "summary": "Mended.",
    }
    block = f"```json\n{json.dumps(done)}\n```\n"
    (tmp_path / "mend.py").write_text(f"from pathlib import Path\n{edits}print({block!r})\n")
    phases = [
        {"name": "mend", "description": "Three lines are wrong.", "acceptance": "The suite passes."}
    ]
    planned, approved = ({"status": "planned", "phases": phases}, {"status": "approved"})
    with serving(
        [says(f"```json\n{json.dumps(data)}\n```\n") for data in (planned, approved)]
    ) as server:
        agents = {
            "thinker": {"use": "anthropic", "baseUrl": server.url, "model": "tiny"},
            "mender": {"use": "command", "argv": [sys.executable, str(tmp_path / "mend.py")]},
            "tester": {
                "use": "acp",
                "argv": argv("roles", str(tmp_path / "edits.json")),
                "graceSeconds": 2,
            },
        }
        flows = {"solve-issue": {"roles": {"committer": "tester"}}}
        engine.store.config_path.write_text(
            json.dumps({"agents": agents, "agent": "thinker", "flows": flows})
        )
        asked = replace(options(demo, home), agents={"coder": "mender"})
        thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=asked)
        result = finish(engine, thread)
        assert len(server.asked) == 2, result
    assert is_green(demo, result["data"]["commitSha"])
    assert [(step["role"], step["by"]) for step in role_steps(engine, thread)] == [
        ("planner", "thinker"),
        ("coder", "mender"),
        ("reviewer", "thinker"),
        ("committer", "tester"),
    ]
    reasons = {
        role: agent["reason"]
        for role, agent in engine.thread(thread).start["agents"]["roles"].items()
    }
    assert reasons == {
        "coder": "asked for, for 'coder'",
        "committer": "config.yaml: flows.solve-issue.roles.committer",
    }
    assert engine.verify(thread).ok


def test_a_kill_while_it_speaks_leaves_nothing_and_resume_goes_on(
    engine: Engine, demo: Path, home: Path
) -> None:
    """A killed agent's processes end with it, half its work is put back, and the next try is a new
    session with the whole history.
    """
    (home / "hang-once").touch()
    thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=options(demo, home))
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "progress" and "still at it" in str(event.body.get("text")),
    )
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"
    assert marked(thread) == []
    worktree = engine.store.work / thread
    assert list(worktree.rglob("half.txt")) != []
    engine.resume(thread, options=options(demo, home))
    result = finish(engine, thread)
    assert is_green(demo, result["data"]["commitSha"])
    assert list(worktree.rglob("half.txt")) == []
    assert [step["role"] for step in role_steps(engine, thread)] == ROLES
    assert engine.verify(thread).ok
    assert marked(thread) == []


def test_a_pause_while_it_speaks_cancels_its_turn_and_resume_asks_again(
    engine: Engine, demo: Path, home: Path
) -> None:
    """An agent in the middle of a long turn is cancelled and ended, half its work is put back, and
    the bundle does not see it.
    """
    (home / "hang-once").touch()
    thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=options(demo, home))
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "progress" and "still at it" in str(event.body.get("text")),
    )
    engine.pause(thread)
    assert settle(engine, thread)["status"] == "paused"
    assert marked(thread) == []
    words = [
        next(iter({"control", "void"} & record.keys()), None)
        for record in engine.thread(thread).records
    ]
    assert [word for word in words if word] == ["control", "void"]
    engine.resume(thread, options=options(demo, home))
    result = finish(engine, thread)
    assert is_green(demo, result["data"]["commitSha"])
    assert list((engine.store.work / thread).rglob("half.txt")) == []
    assert [step["role"] for step in role_steps(engine, thread)] == ROLES
    assert engine.verify(thread).ok


def test_an_agent_that_is_not_there_pauses_the_thread(
    engine: Engine, demo: Path, home: Path
) -> None:
    """The bundle never hears of it; once it is installed, resume goes on."""
    bare = RunOptions(
        directory=demo,
        environment={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        agents={"": "claude"},
    )
    thread = engine.run("solve-issue", prompt=ISSUE, params={}, options=bare)
    assert settle(engine, thread)["status"] == "paused"
    void = next(record for record in engine.thread(thread).records if record.get("void"))
    assert void["void"] == "environment"
    assert (
        "Claude Code is not installed: 'claude' is not on PATH; install it (npm install -g"
        in void["message"]
    )


ASKING = source(
    "asking",
    """
    step = yield {"role": {"name": "coder"}}
    return {"success": True, "message": step["content"]}
""",
    kind="workflow",
    roles={
        "coder": {
            "description": "d",
            "systemPrompt": "s",
            "extractPrompt": "e",
            "schema": {"type": "object"},
        }
    },
    policy={"role": {"workspace": "write", "outside": "ask"}},
)


def test_a_thread_waits_for_a_person_where_the_policy_says_so(
    engine: Engine, demo: Path, home: Path
) -> None:
    """Access outside the workspace is a question to a person; after the answer the same session
    continues, and the files changed until then stay.
    """
    granted(engine.store, ASKING)
    outside = demo.parent / "outside"
    words = ["force:new.txt=new", f"ask:read={outside}", "say:It is read.", "block:{}"]
    agent = {"use": "acp", "argv": argv(*words), "graceSeconds": 2}
    engine.store.config_path.write_text(
        json.dumps({"agents": {"tester": agent}, "agent": "tester"})
    )
    thread = engine.run("asking", prompt="Read it.", params={}, options=options(demo, home))
    assert settle(engine, thread)["status"] == "waiting"
    asked = engine.thread(thread).records[-1]
    assert (
        asked["question"]
        == f"{Path(sys.executable).name} asks, as coder: read {outside} ({outside} is outside). Allow it?"
    )
    assert marked(thread) == []
    worktree = engine.store.work / thread
    assert next(worktree.rglob("new.txt")).read_text() == "new"
    with pytest.raises(UsageError, match="does not fit"):
        engine.answer(thread, "perhaps")
    engine.answer(thread, "yes", options=options(demo, home))
    assert finish(engine, thread)["message"] == f"[read {outside}: yes]It is read."
    assert [record["session"] for record in role_steps(engine, thread)] == ["session-1"]
    assert engine.verify(thread).ok
