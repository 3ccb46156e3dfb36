"""Confinement of an agent's turn: the rights of its role, and the way its terminals are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, SandboxUnavailable
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentRequest
from uncaged_engine.services.sandbox import choose

from ..tools.commands import Commands
from ..tools.working_directory import WorkingDirectory
from .terminal import LocalTerminal, SandboxedTerminal, Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Bounds of one turn: the directory, the rights, and how terminals are started.

    A role that only reads has its terminals in the sandbox, whatever the policy says: nothing else
    keeps a command from writing.
    """

    workdir: WorkingDirectory
    rights: Rights
    writable: bool
    start: Start

    @classmethod
    def of(
        cls, request: AgentRequest, directory: Path, environment: Mapping[str, str]
    ) -> Confinement:
        """Raises: EnvironmentLacks: the policy wants terminals in the sandbox, and no sandbox holds
        here.
        """
        workdir, rights = WorkingDirectory.around(directory), request.rights
        writable = request.writable or request.worktree is None
        if writable and not rights.sandbox:
            return cls(
                workdir=workdir,
                rights=rights,
                writable=writable,
                start=partial(LocalTerminal, environment=environment),
            )
        try:
            if rights.sandbox:
                choose(request.sandbox, scripts=True)
        except SandboxUnavailable as exc:
            raise EnvironmentLacks(str(exc)) from exc
        commands = Commands(
            workdir=workdir,
            environment=environment,
            reads=request.reads,
            writable=writable,
            network=rights.network,
            sandbox=request.sandbox,
            cancel=request.cancel,
        )
        return cls(
            workdir=workdir,
            rights=rights,
            writable=writable,
            start=partial(SandboxedTerminal, commands=commands),
        )
