"""Health check of one agent: the outcome of its probe with a remedy, errors included.

Rule 1: at most one tiny turn each, and none where the outcome can be known without.
Rule 2: the probe runs in an empty directory of its own, which is removed afterwards; its processes
end with it.
Rule 3: no check holds a secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.door.agents import AgentCheck, AgentFailed, AgentRequest
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services import secrets
from uncaged_engine.services.costs import priced
from uncaged_engine.services.processes import MARK
from uncaged_engine.services.settings import NOTHING, Config
from uncaged_models.errors import Busy, ModelFailed, ReplyBroken

LIMIT_S = 60.0
PROMPT = "This only tests the connection. Answer with the one word: ready. Use no tools."


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """Environment of health checks. environment: the caller's, as a thread would carry it. thread:
    an unused id, which marks the processes.
    """

    config: Config
    environment: Mapping[str, str]
    thread: ThreadId
    limit_s: float = LIMIT_S

    @property
    def for_children(self) -> dict[str, str]:
        return {**self.config.for_agents(self.environment), MARK: self.key}

    @property
    def key(self) -> str:
        return f"{self.thread}/1"

    def request(self, scratch: Path) -> AgentRequest:
        """Return the tiny request, without a workspace."""
        role = RoleSpec(
            name="ready",
            description="Says ready.",
            system_prompt="",
            extract_prompt="",
            schema={"type": "object"},
        )
        return AgentRequest(
            thread_id=self.thread,
            key=self.key,
            role=role,
            prompt=PROMPT,
            task=PROMPT,
            params=NOTHING,
            steps=(),
            worktree=None,
            environment=self.for_children,
            timeout_s=self.limit_s,
            attempt=1,
            calls=0,
            role_calls=0,
            repair=None,
            session=None,
            config=NOTHING,
            test_command=None,
            scratch=scratch,
            cancel=Cancel(),
            progress=_ignore_progress,
            sandbox=self.config.sandbox,
            writable=False,
        )


Probe = Callable[[Mapping[str, object], AgentRequest], AgentCheck]
"""Function that tries one agent, given its settings with resolved secrets and the request. Raises
as the agent does.
"""


def check_agent(
    probe: Probe, settings: Mapping[str, object], context: CheckContext, where: str
) -> AgentCheck:
    """Run the probe of an agent and return the outcome.

    Args:
        settings: with ``secret:NAME`` still in them. where: the place in config.yaml of the
            settings, or the agent's name.
    """
    known: dict[str, str] = {}
    begin_s = time.monotonic()
    try:
        resolved, known = secrets.resolve(settings, context.config, context.environment)
        with TemporaryDirectory(prefix="uncaged-doctor-") as scratch:
            begin_s = time.monotonic()
            found = probe(cast("Mapping[str, object]", resolved), context.request(Path(scratch)))
    except (
        EnvironmentLacks,
        UsageError,
        NotFoundError,
        AgentFailed,
        ModelFailed,
        Busy,
        ReplyBroken,
    ) as exc:
        found = failure(exc, where)
    model = {"model": found.model} if found.model else {}
    return replace(
        found,
        text=str(secrets.redact(found.text, known)),
        remedy=str(secrets.redact(found.remedy, known)),
        seconds=round(found.seconds or time.monotonic() - begin_s, 3),
        usage=priced({**found.usage, **model}, context.config.prices) if found.usage else NOTHING,
    )


def failure(problem: Exception, where: str) -> AgentCheck:
    """Return an agent's error as a check with a remedy."""
    match problem:
        case EnvironmentLacks():
            return AgentCheck(
                level="problem",
                text=problem.what,
                remedy=problem.remedy or "fix that, and look again",
            )
        case UsageError() | NotFoundError():
            return AgentCheck(level="problem", text=str(problem), remedy=f"fix {where}")
        case Busy():
            return AgentCheck(
                level="note",
                text=f"it is there, but busy: {problem}",
                remedy="try again later",
                asked=True,
            )
        case AgentFailed() | ModelFailed() if problem.kind == "timeout":
            remedy = "see whether it is still starting, or waits for something; then try again"
            return AgentCheck(level="problem", text=str(problem), remedy=remedy, asked=True)
        case AgentFailed():
            usage = problem.more.get("usage")
            used = usage if isinstance(usage, Mapping) else NOTHING
            return AgentCheck(
                level="problem",
                text=str(problem),
                remedy="run it by hand to see more",
                usage=used,
                asked=True,
            )
        case ReplyBroken():
            return AgentCheck(
                level="problem",
                text=str(problem),
                remedy="look at the server, and at the network between",
                asked=True,
            )
        case _:
            return AgentCheck(level="problem", text=str(problem), remedy=f"fix {where}", asked=True)


def _ignore_progress(_fields: Mapping[str, object]) -> None:
    """Drop progress: a health check has no followers."""
