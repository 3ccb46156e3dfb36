"""Agents of the Agent Client Protocol, as agents of a role in the worktree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from uncaged_bundles.errors import EnvironmentLacks, SandboxUnavailable, UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentCheck,
    AgentKind,
    AgentRequest,
    AgentWaits,
    limits_in,
)
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import Child, kill_leftovers, start_recorded
from uncaged_engine.services.sandbox import choose

from ..command import empty_directory, find_program, program_in, split_command
from ..program.table import ProgramRow, row_for, title_in
from ..tools.commands import Commands
from ..tools.place import Place
from .client import AcpClient
from .grants import ANSWERS, Grants
from .loop import LOOP_THREAD
from .prompt_turn import PermissionNeeded, Prompt, PromptTurn
from .session import AgentInfo, TurnSettings
from .terminal import LocalTerminal, SandboxedTerminal, Start, Terminals
from .transcript import Transcript, one_line

KIND = "acp"
START_S = 120.0
"""Long, as adapters may be downloaded on first use."""
LEAVING_S = 2.0

T = TypeVar("T")


class AcpAgent(AgentKind):
    """Settings: row (of the table) or argv (list), arguments (more of them), env, timeoutSeconds,
    startSeconds, graceSeconds.
    """

    name = KIND
    about = ""

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(
            settings,
            "row",
            "argv",
            "arguments",
            "env",
            "timeoutSeconds",
            "startSeconds",
            "graceSeconds",
            kind=KIND,
        )
        if ("row" in settings) == ("argv" in settings):
            raise UsageError(
                f"an agent that uses {KIND!r} needs one of row (a name of the table) and argv (a list of texts)"
            )
        self._row: ProgramRow | None = row_for(settings, KIND) if "row" in settings else None
        self._argv = check.texts(settings, "argv", kind=KIND) if "argv" in settings else ()
        self._more = (
            check.texts(settings, "arguments", kind=KIND) if "arguments" in settings else ()
        )
        self._env = check.variables(settings, "env", kind=KIND)
        self._timeout_s = check.seconds(settings, "timeoutSeconds", float("inf"), kind=KIND)
        self._start_s = check.seconds(settings, "startSeconds", START_S, kind=KIND)
        self._grace_s = check.seconds(settings, "graceSeconds", 5.0, kind=KIND)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> str:
        """Return where the policy holds: in what an agent of the protocol asks of its client."""
        del settings
        return f"held to the policy's {limits_in(rights)} in what it asks of us"

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object]:
        return {"argv": split_command(word)}

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return title_in(settings) or program_in(settings)

    @property
    def title(self) -> str:
        return self._row.title if self._row is not None else Path(self._argv[0]).name

    def check(self, request: AgentRequest) -> AgentCheck:
        return AgentCheck(
            level="ok", text=f"{self._command({**request.environment, **self._env})[0]} is there"
        )

    def check_live(self, request: AgentRequest) -> AgentCheck:
        """Open a session and ask nothing, unless only an answer tells whether the agent is logged
        in.
        """
        if self._row is not None and self._row.login_shows == "prompt":
            answer = self.answer(request)
            return AgentCheck(
                level="ok", text=f"{self.title} answered", usage=answer.usage or {}, asked=True
            )
        info = self.greet(request)
        return AgentCheck(
            level="ok",
            text=f"{self.title}{f' ({info.agent})' if info.agent else ''} opened a session",
            model=info.model,
        )

    def answer(self, request: AgentRequest) -> AgentAnswer:
        with request.cancel.stops_for_pause():
            return self._with_process(
                request,
                lambda process, confinement, stopped: self._turn(
                    process, request, confinement, stopped
                ),
            )

    def greet(self, request: AgentRequest) -> AgentInfo:
        """Start the agent, initialise, open a session, and end it without a prompt.

        Raises:
            EnvironmentLacks, AgentFailed: the latter when it was stopped.
        """
        return self._with_process(
            request,
            lambda process, confinement, stopped: self._greet(
                process, request, confinement, stopped
            ),
        )

    def _with_process(
        self,
        request: AgentRequest,
        work: Callable[[Child, Confinement, asyncio.Event], Coroutine[Any, Any, T]],
    ) -> T:
        """Start a process, run *work* with it, and end it."""
        environment = {**request.environment, **self._env}
        directory = request.worktree or empty_directory(request.scratch)
        confinement = Confinement.of(request, directory, environment)
        argv = self._command(environment)
        try:
            process = start_recorded(
                argv,
                directory=directory,
                environment=environment,
                scratch=request.scratch,
                key=request.key,
            )
        except OSError as exc:
            raise EnvironmentLacks(
                f"{self.title} cannot be started: {exc.strerror or exc}", remedy="fix that"
            ) from exc
        patience_s = 0.0
        try:
            result = LOOP_THREAD.run(
                lambda stopped: work(process, confinement, stopped), request.cancel
            )
            patience_s = min(LEAVING_S, self._grace_s)  # it may still be writing its session
        finally:
            process.close_pipes()
            process.end(patience_s=patience_s, grace_s=self._grace_s)
            kill_leftovers(request.scratch, request.key)
        return result

    async def _turn(
        self,
        process: Child,
        request: AgentRequest,
        confinement: Confinement,
        stopped: asyncio.Event,
    ) -> AgentAnswer:
        transcript = Transcript(confinement.place, request.progress, request.remark)
        terminals = Terminals(confinement.place, confinement.start)
        grants = (
            Grants.of(request.scratch, request.key, request.reply)
            if confinement.rights.ask
            else Grants()
        )
        client = AcpClient(
            place=confinement.place,
            rights=confinement.rights,
            writable=confinement.writable,
            grants=grants,
            transcript=transcript,
            terminals=terminals,
            remark=request.remark,
        )
        try:
            turn = PromptTurn(
                process,
                client,
                transcript,
                self._turn_settings(request, self._start_s),
                request.remark,
            )
            return await turn.answer(
                prompt_of(request, grants), str(confinement.place.here), stopped
            )
        except PermissionNeeded as exc:
            asked = client.wanted or grants
            wanted = replace(asked, session=client.session, title=str(request.redact(asked.title)))
            wanted.keep(request.scratch, request.key)
            paths = ", ".join(wanted.asked)
            question = f"{self.title} asks, as {request.role.name}: {one_line(wanted.title)} ({one_line(paths)} is outside). Allow it?"
            raise AgentWaits(
                {"question": question, "schema": {"type": "string", "enum": list(ANSWERS)}}
            ) from exc
        finally:
            await terminals.close()

    async def _greet(
        self,
        process: Child,
        request: AgentRequest,
        confinement: Confinement,
        stopped: asyncio.Event,
    ) -> AgentInfo:
        transcript = Transcript(confinement.place, request.progress, request.remark)
        client = AcpClient(
            place=confinement.place,
            rights=confinement.rights,
            writable=confinement.writable,
            grants=Grants(),
            transcript=transcript,
            terminals=Terminals(confinement.place, confinement.start),
            remark=request.remark,
        )
        start_s = min(self._start_s, request.timeout_s, self._timeout_s)
        # a slow agent is also slow to start
        settings = replace(self._turn_settings(request, start_s), timeout_s=2 * start_s)
        return await PromptTurn(process, client, transcript, settings, request.remark).greet(
            str(confinement.place.here), stopped
        )

    def _turn_settings(self, request: AgentRequest, start_s: float) -> TurnSettings:
        return TurnSettings(
            name=self.title,
            login=self._row.how_to_log_in
            if self._row is not None
            else "log in with its own command",
            authenticate=self._row.authenticate if self._row is not None else None,
            start_s=start_s,
            timeout_s=min(request.timeout_s, self._timeout_s),
            grace_s=self._grace_s,
        )

    def _command(self, environment: Mapping[str, str]) -> list[str]:
        if self._row is not None:
            return self._row.argv(environment.get("PATH", ""), {"more": self._more})
        return [find_program(self._argv[0], environment), *self._argv[1:]]


def prompt_of(request: AgentRequest, grants: Grants) -> Prompt:
    """Return the prompt: whole for a new session, the new part for one that continues."""
    if grants.session is not None and request.repair is None:
        follow_up = grants.follow_up(request.reply)
        return Prompt(
            whole=f"{request.prompt}\n{follow_up}\n", again=follow_up, session=grants.session
        )
    return Prompt(
        whole=request.prompt,
        again=request.repair.wording if request.repair is not None else request.prompt,
        session=request.session if isinstance(request.session, str) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Bounds of one turn: the directory, the rights, and how terminals are started.

    A role that only reads has its terminals in the sandbox, whatever the policy says: nothing else
    keeps a command from writing.
    """

    place: Place
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
        place, rights = Place.around(directory), request.rights
        writable = request.writable or request.worktree is None
        if writable and not rights.sandbox:
            return cls(
                place=place,
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
            place=place,
            environment=environment,
            reads=request.reads,
            writable=writable,
            network=rights.network,
            sandbox=request.sandbox,
            cancel=request.cancel,
        )
        return cls(
            place=place,
            rights=rights,
            writable=writable,
            start=partial(SandboxedTerminal, commands=commands),
        )
