"""Agent kind of the built-in repair. Each answer is one process, so that a kill ends all of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentCheck,
    AgentFailed,
    AgentKind,
    AgentRequest,
    AgentWaits,
    remark_stderr,
)
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import MAX_STDERR_BYTES, Finished, run_program

from .task import KEYS, KIND, ROLES, Task, limits_of

GRACE_S = 10.0
MAX_ANSWER_BYTES = 4 << 20
WRITERS = ("coder", "committer")
READING = ("read", "run")
NEEDED = {"coder": (*READING, "edit"), "committer": ("commit",)}


class RepairAgent(AgentKind):
    """Settings: budgetSeconds (processor time of a search), maxCandidates, testSeconds,
    suiteSeconds, testCommand.
    """

    name = KIND
    about = "no model; searches small edits until the repository's own failing test passes"
    plays = ROLES
    keys = KEYS

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._limits = limits_of(settings)
        self._test_command = (
            check.text(settings, "testCommand", kind=KIND) if "testCommand" in settings else None
        )

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> None:
        """Return None: the policy holds in full. The repair refuses a role whose tools it lacks,
        and runs tests in the sandbox.
        """
        del settings, rights

    def check(self, request: AgentRequest) -> AgentCheck:
        del request
        return AgentCheck(level="ok", text="built in: no model, no key; it works in the sandbox")

    def answer(self, request: AgentRequest) -> AgentAnswer:
        if request.role.name not in ROLES:
            raise AgentFailed(
                f"the built-in repair plays {', '.join(ROLES)}, not {request.role.name!r}; bind another agent to that role"
            )
        if not request.writable and request.role.name in WRITERS:
            raise AgentFailed(
                f"the built-in repair cannot play {request.role.name!r} where the flow's policy lets roles only read"
            )
        missing = ", ".join(
            tool for tool in NEEDED.get(request.role.name, READING) if not request.rights.may(tool)
        )
        if missing:
            raise AgentFailed(
                f"the built-in repair cannot play {request.role.name!r}: its tools in the flow's policy lack {missing}"
            )
        if request.worktree is None:
            raise AgentFailed(
                "the built-in repair works in a git repository; start the flow with --workspace DIR"
            )
        task = Task(
            role=request.role.name,
            worktree=request.worktree,
            scratch=request.scratch,
            text=request.task,
            steps=[_plain(step) for step in request.steps],
            environment=request.environment,
            test_command=request.test_command or self._test_command,
            sandbox=request.sandbox,
            limits=self._limits,
            wall_s=request.timeout_s,
            attended=request.attended,
            reply=request.reply,
        )
        finished = run_program(
            [sys.executable, "-P", "-m", "uncaged_repair"],
            directory=request.scratch,
            environment=request.environment,
            stdin=json.dumps(task.as_json()).encode() + b"\n",
            timeout_s=request.timeout_s,
            cancel=request.cancel,
            scratch=request.scratch,
            key=request.key,
            grace_s=GRACE_S,
            max_stdout_bytes=MAX_ANSWER_BYTES,
            on_stderr=ProgressForwarder(request.progress),
        )
        remark_stderr(request.remark, finished.stderr, max_bytes=MAX_STDERR_BYTES)
        return AgentAnswer(text=_text_of(finished, request.timeout_s))


class ProgressForwarder:
    """Parser of the process's standard error: JSON objects become progress, anything else is
    dropped.
    """

    def __init__(self, progress: Callable[[Mapping[str, object]], None]) -> None:
        self._progress = progress
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                fields = json.loads(line)
            except ValueError:
                continue
            if isinstance(fields, dict):
                self._progress(fields)


def _plain(step: Mapping[str, object]) -> dict[str, object]:
    return {key: step[key] for key in ("role", "content", "meta", "snapshot") if key in step}


def _text_of(finished: Finished, timeout_s: float) -> str:
    if finished.cancelled:
        raise AgentFailed("the built-in repair was stopped")
    if finished.timed_out:
        raise AgentFailed(
            f"the built-in repair gave no answer within {timeout_s:g} s and was stopped",
            kind="timeout",
        )
    last = finished.stderr.decode(errors="replace").strip()[-2000:]
    try:
        result = json.loads(finished.stdout)
    except ValueError:
        result = None
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        return str(result["text"])
    if isinstance(result, dict) and isinstance(result.get("question"), str):
        raise AgentWaits({"question": result["question"], "schema": {"enum": result["choices"]}})
    if isinstance(result, dict) and isinstance(result.get("lacks"), str):
        raise EnvironmentLacks(str(result["lacks"]))
    if isinstance(result, dict) and isinstance(result.get("failed"), str):
        raise AgentFailed(str(result["failed"]))
    raise AgentFailed(
        f"the built-in repair ended without an answer (exit {finished.exit_code}): {last}",
        more={"exitCode": finished.exit_code},
    )
