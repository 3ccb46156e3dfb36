"""Task of the repair process, checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from uncaged_engine.services import agent_settings as check

KIND = "repair"
KEYS = ("budgetSeconds", "maxCandidates", "testSeconds", "suiteSeconds", "testCommand")
ROLES = ("planner", "coder", "reviewer", "committer")


class PersonNeeded(Exception):
    """Question that only a person can answer. choices: the possible answers."""

    def __init__(self, question: str, choices: Sequence[str]) -> None:
        super().__init__(question)
        self.choices = tuple(choices)


class Progress(Protocol):
    """Callback that reports progress to followers of the thread."""

    def __call__(
        self, message: str, *, candidates: int | None = None, file: str | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairLimits:
    """Limits of a repair. budget_s: processor time of one coder's search. test_s: of one test.
    suite_s: of one run of all tests.
    """

    budget_s: float = 60.0
    max_candidates: int = 50_000
    test_s: float = 10.0
    suite_s: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Task of the repair: the role, the files, the limits.

    worktree: the directory to work in, perhaps a subdirectory of the repository. steps: the role
    steps so far. wall_s: time until the answer is due. attended: a person started the thread on a
    terminal. reply: that person's answer to a question of this role.
    """

    role: str
    worktree: Path
    scratch: Path
    text: str
    steps: Sequence[Mapping[str, object]]
    environment: Mapping[str, str]
    test_command: str | None
    sandbox: str
    limits: RepairLimits
    wall_s: float
    attended: bool = False
    reply: object = None

    def as_json(self) -> dict[str, object]:
        """Return the task as JSON values, which `task_of` reads."""
        return {
            "role": self.role,
            "worktree": str(self.worktree),
            "scratch": str(self.scratch),
            "text": self.text,
            "steps": [dict(step) for step in self.steps],
            "environment": dict(self.environment),
            "testCommand": self.test_command,
            "sandbox": self.sandbox,
            "limits": [
                self.limits.budget_s,
                self.limits.max_candidates,
                self.limits.test_s,
                self.limits.suite_s,
            ],
            "wall": self.wall_s,
            "attended": self.attended,
            "reply": self.reply,
        }

    def last_meta(self, role: str) -> Mapping[str, object]:
        """Return the data of the last step of *role*; empty if there is none."""
        for step in reversed(self.steps):
            if step.get("role") == role and isinstance(meta := step.get("meta"), Mapping):
                return meta
        return {}


def task_of(message: Mapping[str, object]) -> Task:
    """Return the task in JSON values that `Task.as_json` made."""
    steps, environment, limits = message["steps"], message["environment"], message["limits"]
    if (
        not isinstance(steps, list)
        or not isinstance(environment, dict)
        or not isinstance(limits, list)
    ):
        raise TypeError("a task has steps, an environment and limits")
    command = message["testCommand"]
    return Task(
        role=str(message["role"]),
        worktree=Path(str(message["worktree"])),
        scratch=Path(str(message["scratch"])),
        text=str(message["text"]),
        steps=steps,
        environment=environment,
        test_command=None if command is None else str(command),
        sandbox=str(message["sandbox"]),
        limits=RepairLimits(
            budget_s=float(limits[0]),
            max_candidates=int(limits[1]),
            test_s=float(limits[2]),
            suite_s=float(limits[3]),
        ),
        wall_s=float(str(message["wall"])),
        attended=bool(message["attended"]),
        reply=message["reply"],
    )


def limits_of(settings: Mapping[str, object]) -> RepairLimits:
    """Return the checked limits of an agent's settings; UsageError names the one that is wrong."""
    check.known(settings, *KEYS, kind=KIND)
    default = RepairLimits()
    return RepairLimits(
        budget_s=check.seconds(settings, "budgetSeconds", default.budget_s, kind=KIND),
        max_candidates=int(
            check.seconds(settings, "maxCandidates", default.max_candidates, kind=KIND)
        ),
        test_s=check.seconds(settings, "testSeconds", default.test_s, kind=KIND),
        suite_s=check.seconds(settings, "suiteSeconds", default.suite_s, kind=KIND),
    )
