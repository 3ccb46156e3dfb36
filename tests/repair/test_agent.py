"""The agent as the engine sees it: four roles in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest
from testbed.roles import request, role_spec
from uncaged_agents.kinds import factory_of
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentFailed
from uncaged_engine.door.effects import Cancel
from uncaged_repair.agent import ProgressForwarder, RepairAgent
from uncaged_repair.roles.answers import FIRST_LINE


class Program(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def wrong(self) -> Mapping[str, str]: ...


class Repository(Protocol):
    @property
    def top(self) -> Path: ...
    @property
    def scratch(self) -> Path: ...
    def git(self, *words: str) -> str: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]
ENDLESS = {
    "code_of.py": "def f(x):\n    while x != 5:\n        x = x\n    return 'never'\n",
    "test_code.py": "from code_of import f\n\n\ndef test_f():\n    assert f(3) == 'what no edit gives'\n",
}
"""A search that takes long: nearly every candidate loops."""


def asked(made: Repository, role: str, **more: Any) -> Any:
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    usual = {
        "role": role_spec(role),
        "worktree": made.top,
        "scratch": made.scratch,
        "environment": environment,
        "timeout_s": 120.0,
    }
    return request(made.top, **(usual | more))


@pytest.mark.slow
def test_four_roles_take_a_failing_test_to_a_commit(
    make_repository: Make, programs: Mapping[str, Program]
) -> None:
    """The roles run in processes of their own, with only the steps between them; the first line of
    each answer names the program.
    """
    made = make_repository(programs["thermostat"].wrong)
    agent = factory_of("repair")({"budgetSeconds": 60, "testSeconds": 2})
    steps: list[dict[str, object]] = []
    heard: list[Mapping[str, object]] = []
    for role in ("planner", "coder", "reviewer", "committer"):
        text = agent.answer(asked(made, role, steps=steps, progress=heard.append)).text
        assert text.splitlines()[0] == FIRST_LINE
        steps.append(
            {
                "role": role,
                "content": text,
                "meta": json.loads(text.split("```json\n")[1].split("\n```")[0]),
            }
        )
    statuses = [meta["status"] for step in steps if isinstance(meta := step["meta"], dict)]
    assert statuses == ["planned", "all-done", "approved", "committed"]
    assert made.git("log", "-1", "--format=%s") == "Repair thermostat.py"
    assert "1 of 5 tests fail" in made.git("log", "-1", "--format=%b")
    assert any("candidates" in fields and fields.get("file") == "thermostat.py" for fields in heard)


@pytest.mark.slow
def test_a_kill_ends_everything_and_leaves_the_worktree_alone(make_repository: Make) -> None:
    """The process of the role, the sandboxes and what runs in them are gone when the answer is
    given up.
    """
    made = make_repository(ENDLESS)
    cancel = Cancel()
    searching = threading.Event()

    def progress(fields: Mapping[str, object]) -> None:
        if fields.get("candidates"):
            searching.set()
            cancel.request()

    with pytest.raises(AgentFailed, match="stopped"):
        RepairAgent({"testSeconds": 1}).answer(
            asked(made, "coder", cancel=cancel, progress=progress)
        )
    assert searching.is_set()
    assert [
        process.pid for process in psutil.process_iter() if mentions(process, made.scratch)
    ] == []
    assert made.git("status", "--porcelain") == ""
    assert not (made.scratch / "repair").exists()  # a kill leaves time for the cleanup


PARENT = """
import json, sys
from pathlib import Path
from testbed.roles import request, role_spec
from uncaged_repair.agent import RepairAgent
top, scratch, environment = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
RepairAgent({"testSeconds": 60}).answer(request(top, role=role_spec("planner"), scratch=scratch, environment=environment, timeout_s=120.0,
    progress=lambda fields: str(fields.get("message")).startswith("waiting") and print("waiting", flush=True)))
"""


@pytest.mark.slow
def test_when_the_worker_is_killed_the_role_ends(make_repository: Make) -> None:
    """SIGKILL of the asking process: the role's process and its sandbox do not outlive it, even
    while nothing is said.
    """
    made = make_repository(ENDLESS)
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    words = [
        sys.executable,
        "-c",
        PARENT,
        str(made.top),
        str(made.scratch),
        json.dumps(environment),
    ]
    tests = Path(__file__).parents[1]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, env={**environment, "PYTHONPATH": str(tests)}
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"waiting\n"
        running = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    assert len(running) > 1
    assert psutil.wait_procs(running, timeout=20)[1] == []


def mentions(process: psutil.Process, place: Path) -> bool:
    try:
        return any(str(place) in word for word in process.cmdline())
    except psutil.Error:
        return False


def test_other_roles_and_flows_without_a_workspace_are_refused(tmp_path: Path) -> None:
    agent = RepairAgent({})
    with pytest.raises(AgentFailed, match="'poet'"):
        agent.answer(request(tmp_path, role=role_spec("poet")))
    with pytest.raises(AgentFailed, match="--workspace"):
        agent.answer(request(tmp_path, role=role_spec("coder"), worktree=None))
    with pytest.raises(AgentFailed, match="only read"):
        agent.answer(request(tmp_path, role=role_spec("coder"), writable=False))
    with pytest.raises(AgentFailed, match="lack run, edit"):
        agent.answer(
            request(tmp_path, role=role_spec("coder"), rights=Rights(tools=frozenset({"read"})))
        )


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"budget": 3}, "budgetSeconds"),
        ({"budgetSeconds": 0}, "above 0"),
        ({"testCommand": 3}, "testCommand"),
        ({"maxCandidates": "many"}, "maxCandidates"),
    ],
)
def test_a_wrong_setting_is_named(settings: Mapping[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        RepairAgent(settings)


@pytest.mark.slow
def test_what_a_person_can_fix_pauses_instead_of_failing(make_repository: Make) -> None:
    """A test command that cannot be read, no repository: the thread can be resumed afterwards."""
    made = make_repository({"a.py": ""})
    with pytest.raises(EnvironmentLacks, match="cannot be read"):
        RepairAgent({"testCommand": "pytest 'open"}).answer(asked(made, "planner"))
    with pytest.raises(EnvironmentLacks, match="git"):
        RepairAgent({}).answer(asked(made, "planner", worktree=made.scratch))


@pytest.mark.slow
def test_the_command_of_the_run_comes_before_the_one_of_the_settings(make_repository: Make) -> None:
    made = make_repository({"a.py": ""})
    with pytest.raises(EnvironmentLacks, match="'given"):
        RepairAgent({"testCommand": "pytest 'set"}).answer(
            asked(made, "planner", test_command="pytest 'given")
        )


def test_progress_is_what_parses() -> None:
    """Pieces may break anywhere; lines that are no JSON object are left out."""
    heard: list[Mapping[str, object]] = []
    forward = ProgressForwarder(heard.append)
    for piece in (b'{"mess', b'age": "a"}\nnoise\n[1]\n{"candi', b'dates": 3}', b"\n"):
        forward(piece)
    assert heard == [{"message": "a"}, {"candidates": 3}]
