"""Turns of the test agent, as the role effect requests them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from uncaged_agents.acp.agent import AcpAgent
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_engine.door.agents import AgentAnswer, AgentFailed
from uncaged_engine.processes.leftovers import MARK

from .journals import NOW_MS
from .roles import request

PROGRAM = Path(__file__).parent / "acp_agent.py"


def argv(*words: str) -> list[str]:
    return [sys.executable, str(PROGRAM), *words]


@dataclass(slots=True, kw_only=True)
class TurnHarness:
    """Harness for turns: a worktree, a home, and the progress reports."""

    root: Path
    # what carries its mark is ended
    thread: ThreadId = field(default_factory=lambda: new_thread_id(NOW_MS, os.urandom(10)))
    told: list[Mapping[str, object]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def worktree(self) -> Path:
        return self.root / "worktree"

    @property
    def marks(self) -> Path:
        return self.root / "marks"

    @classmethod
    def make(cls, root: Path) -> TurnHarness:
        harness = cls(root=root)
        for directory in (harness.worktree, root / "scratch"):
            directory.mkdir()
        (harness.worktree / ".git").mkdir()  # as far as confinement goes, that is a worktree
        os.mkfifo(harness.marks)
        return harness

    def ask(
        self, *words: str, settings: Mapping[str, object] | None = None, **more: Any
    ) -> AgentAnswer:
        agent = AcpAgent({"argv": argv(*words), "graceSeconds": 5.0, **(settings or {})})
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            MARK: f"{self.thread}/1",
            "MARKS": str(self.marks),
        }
        usual = {
            "key": f"{self.thread}/1",
            "worktree": self.worktree,
            "scratch": self.root / "scratch",
            "environment": environment,
            "progress": self.told.append,
            "remark": self.remarks.append,
        }
        return agent.answer(request(self.root, **(usual | more)))

    def text(self, *words: str, **more: Any) -> str:
        return self.ask(*words, **more).text

    def failure(self, *words: str, **more: Any) -> AgentFailed:
        with pytest.raises(AgentFailed) as caught:
            self.ask(*words, **more)
        return caught.value

    def lack(self, *words: str, **more: Any) -> str:
        with pytest.raises(EnvironmentLacks) as caught:
            self.ask(*words, **more)
        return str(caught.value)
