"""A corpus of small programs with one wrong line each, repositories made from them, and the roles
played on these.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml
from uncaged_repair.harness.harness import Harness
from uncaged_repair.roles.coder import code
from uncaged_repair.roles.committer import commit
from uncaged_repair.roles.planner import plan
from uncaged_repair.roles.reviewer import review
from uncaged_repair.task import RepairLimits, Task

CORPUS = Path(__file__).parent / "corpus"
ROLE_FUNCTIONS = {"planner": plan, "coder": code, "reviewer": review, "committer": commit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """right: the files as they should be. wrong: with the bug. path: the file that holds it."""

    name: str
    bug: str
    path: str
    right: Mapping[str, str]
    wrong: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """An answer: its text, and the data in the block at its end."""

    text: str
    meta: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository with one commit, and what has been played on it."""

    top: Path
    scratch: Path
    steps: list[dict[str, object]]
    said: list[str]

    def play(
        self,
        role: str,
        *,
        text: str = "",
        test_command: str | None = None,
        sandbox: str = "auto",
        limits: RepairLimits = RepairLimits(budget_s=60.0, test_s=1.0),  # noqa: B008 - frozen
        environment: Mapping[str, str] = MappingProxyType({}),
        inside: str = "",
        attended: bool = False,
        reply: object = None,
    ) -> Played:
        """Play *role* in this process, in the subdirectory *inside*."""
        task = Task(
            role=role,
            worktree=self.top / inside,
            scratch=self.scratch,
            text=text,
            steps=tuple(self.steps),
            environment={
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                **environment,
            },
            test_command=test_command,
            sandbox=sandbox,
            limits=limits,
            wall_s=600.0,
            attended=attended,
            reply=reply,
        )
        answer = ROLE_FUNCTIONS[role](task, self._hear)
        meta = json.loads(answer.split("```json\n")[1].split("\n```")[0])
        self.steps.append(
            {"role": role, "meta": meta, "content": answer.split("```json")[0].strip()}
        )
        return Played(text=answer, meta=meta)

    def git(self, *words: str) -> str:
        settings = (
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "-c",
            "core.quotePath=false",
        )
        return subprocess.run(
            ["git", *settings, *words], cwd=self.top, check=True, capture_output=True, text=True
        ).stdout.strip()

    def read(self, path: str) -> str:
        return (self.top / path).read_text("utf-8")

    def _hear(
        self,
        message: str,
        *,
        candidates: int | None = None,  # noqa: ARG002 - as followers are called
        file: str | None = None,  # noqa: ARG002 - the same
    ) -> None:
        self.said.append(message)


def load(path: Path) -> Program:
    data = yaml.safe_load(path.read_text("utf-8"))
    right: dict[str, str] = data["files"]
    holders = [name for name, text in right.items() if data["right"] in text]
    assert len(holders) == 1
    wrong = {**right, holders[0]: right[holders[0]].replace(data["right"], data["wrong"])}
    return Program(name=path.stem, bug=data["bug"], path=holders[0], right=right, wrong=wrong)


PROGRAMS = {path.stem: load(path) for path in sorted(CORPUS.glob("*.yaml"))}


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    """Yield each program of the corpus."""
    return PROGRAMS[request.param]


@pytest.fixture
def programs() -> Mapping[str, Program]:
    return PROGRAMS


@pytest.fixture
def make_repository(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Repository]:
    """Make a repository with these files, in one commit."""
    made: list[Repository] = []

    def make(files: Mapping[str, str | bytes]) -> Repository:
        base = tmp_path / f"repository-{len(made)}"
        repository = Repository(top=base / "top", scratch=base / "scratch", steps=[], said=[])
        repository.scratch.mkdir(parents=True)
        for path, text in files.items():
            place = repository.top / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text if isinstance(text, bytes) else text.encode())
        repository.git("init", "-q", "-b", "main")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "start")
        made.append(repository)
        return repository

    return make


@pytest.fixture
def open_harness(
    make_repository: Callable[[Mapping[str, str | bytes]], Repository],
) -> Iterator[Callable[..., Harness]]:
    """Open a harness on a repository with these files."""
    with ExitStack() as stack:

        def make(files: Mapping[str, str | bytes], test_command: str | None = None) -> Harness:
            made = make_repository(files)
            task = Task(
                role="planner",
                worktree=made.top,
                scratch=made.scratch,
                text="",
                steps=(),
                environment={"PATH": os.environ["PATH"]},
                test_command=test_command,
                sandbox="auto",
                limits=RepairLimits(),
                wall_s=600.0,
            )
            return stack.enter_context(Harness(task, lambda *_given, **_named: None))

        yield make
