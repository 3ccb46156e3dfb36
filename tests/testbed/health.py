"""Environment for trials of agents: a temporary home and PATH, with fake coding programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncaged_agents.health.check import CheckContext, check_agent
from uncaged_agents.health.targets import CheckTarget, check_all, probe_of
from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_engine.door.agents import AgentCheck
from uncaged_engine.settings.config import Config, SecretSource
from uncaged_models.settings import with_key

from .journals import NOW_MS

FAKES = Path(__file__).parent / "fake_programs"
ACP = Path(__file__).parent / "acp_agent.py"
PLANTED = "sk-planted-0123456789"


@dataclass(slots=True, kw_only=True)
class Proving:
    """Tries agents with a secret ``secret:K``; remembers nothing."""

    root: Path
    # what carries its mark is ended
    thread: ThreadId = field(default_factory=lambda: new_thread_id(NOW_MS, os.urandom(10)))

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.root / 'bin'}:{FAKES}:{Path(sys.executable).parent}:/usr/bin:/bin"
        names = {"PLAY": "play", "CALLS": "calls", "UP": "up"}
        return {
            "PATH": path,
            "HOME": str(self.root),
            "KEY_HERE": PLANTED,
            **{name: str(self.root / file) for name, file in names.items()},
        }

    def context(self, config: Config | None = None, limit_s: float = 20.0) -> CheckContext:
        secrets = {"K": SecretSource(env="KEY_HERE"), "NONE": SecretSource(env="NOT_SET")}
        config = config or Config(secrets=secrets, environment=("PLAY", "CALLS", "UP"))
        return CheckContext(
            config=config, environment=self.environment, thread=self.thread, limit_s=limit_s
        )

    def find(self, use: str, *, limit_s: float = 20.0, **settings: Any) -> AgentCheck:
        """Try one agent."""
        return check_agent(
            probe_of(use),
            with_key(use, settings),
            self.context(limit_s=limit_s),
            "agents.mine in config.yaml",
        )

    def acp(self, *words: str, **settings: Any) -> AgentCheck:
        return self.find("acp", argv=[sys.executable, str(ACP), *words], **settings)

    def all(self, config: Config) -> list[tuple[CheckTarget, AgentCheck]]:
        return list(check_all(self.context(config), self.root))

    def program(self, name: str, script: str) -> None:
        """Put a program on the PATH."""
        place = self.root / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)

    @classmethod
    def make(cls, root: Path, play: str = "{}") -> Proving:
        (root / "play").write_text(play)
        return cls(root=root)


def shown(found: AgentCheck) -> Mapping[str, object]:
    """Return the parts that do not differ from run to run."""
    return {"level": found.level, "text": found.text, "remedy": found.remedy, "asked": found.asked}
