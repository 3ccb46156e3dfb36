"""Agents of the Agent Client Protocol, as agents of a role in the worktree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from uncaged_bundles.errors import UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentCheck,
    AgentRequest,
    AgentWaits,
    limits_in,
)
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import Child, kill_leftovers, start_recorded

from ..process_agent import (
    SHARED_KEYS,
    ProcessAgent,
    directory_of,
    find_program,
    optional_texts,
    program_in,
    split_command,
)
from ..program.table import ProgramRow, row_for, title_in
from .client import AcpClient
from .confinement import Confinement
from .grants import ANSWERS, Grants
from .loop import LOOP_THREAD
from .prompt_turn import PermissionNeeded, Prompt, PromptTurn
from .session import AgentInfo, TurnSettings
from .terminal import Terminals
from .transcript import Transcript, one_line

START_S = 120.0
"""Long, as adapters may be downloaded on first use."""
LEAVING_S = 2.0

T = TypeVar("T")


class AcpAgent(ProcessAgent):
    """Settings: row (of the table) or argv (list), arguments (more of them), startSeconds, and
    those of all programs.
    """

    name = "acp"
    keys = ("row", "argv", "arguments", "startSeconds", *SHARED_KEYS)

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(settings)
        if ("row" in settings) == ("argv" in settings):
            raise UsageError(
                f"an agent that uses {self.name!r} needs one of row (a name of the table) and argv (a list of texts)"
            )
        self._row: ProgramRow | None = row_for(settings, self.name) if "row" in settings else None
        self._argv = optional_texts(settings, "argv", self.name) or ()
        self._more = optional_texts(settings, "arguments", self.name) or ()
        self._start_s = check.seconds(settings, "startSeconds", START_S, kind=self.name)

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

    def command(self, environment: Mapping[str, str]) -> list[str]:
        if self._row is not None:
            return self._row.argv(environment.get("PATH", ""), {"more": self._more})
        return [find_program(self._argv[0], environment), *self._argv[1:]]

    def check_live(self, request: AgentRequest) -> AgentCheck:
        """Open a session and ask nothing, unless only an answer tells whether the agent is logged
        in.
        """
        if self._row is not None and self._row.login_shows == "prompt":
            answer = self.answer(request)
            return AgentCheck(
                level="ok", text=f"{self.title} answered", usage=answer.usage or {}, asked=True
            )
        info = self.handshake(request)
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

    def handshake(self, request: AgentRequest) -> AgentInfo:
        """Start the agent, initialise, open a session, and end it without a prompt.

        Raises:
            EnvironmentLacks, AgentFailed: the latter when it was stopped.
        """
        return self._with_process(
            request,
            lambda process, confinement, stopped: self._handshake(
                process, request, confinement, stopped
            ),
        )

    def _with_process(
        self,
        request: AgentRequest,
        work: Callable[[Child, Confinement, asyncio.Event], Coroutine[Any, Any, T]],
    ) -> T:
        """Start a process, run *work* with it, and end it."""
        environment, directory = self.environment(request), directory_of(request)
        confinement = Confinement.of(request, directory, environment)
        argv = self.command(environment)
        try:
            process = start_recorded(
                argv,
                directory=directory,
                environment=environment,
                scratch=request.scratch,
                key=request.key,
            )
        except OSError as exc:
            raise self.start_failure(exc) from exc
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
        transcript = Transcript(confinement.workdir, request.progress, request.remark)
        terminals = Terminals(confinement.workdir, confinement.start)
        grants = (
            Grants.of(request.scratch, request.key, request.reply)
            if confinement.rights.ask
            else Grants()
        )
        client = AcpClient(
            workdir=confinement.workdir,
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
                prompt_of(request, grants), str(confinement.workdir.here), stopped
            )
        except PermissionNeeded as exc:
            asked = client.pending or grants
            pending = replace(asked, session=client.session, title=str(request.redact(asked.title)))
            pending.save(request.scratch, request.key)
            paths = ", ".join(pending.asked)
            question = f"{self.title} asks, as {request.role.name}: {one_line(pending.title)} ({one_line(paths)} is outside). Allow it?"
            raise AgentWaits(
                {"question": question, "schema": {"type": "string", "enum": list(ANSWERS)}}
            ) from exc
        finally:
            transcript.keep(request.trace)
            await terminals.close()

    async def _handshake(
        self,
        process: Child,
        request: AgentRequest,
        confinement: Confinement,
        stopped: asyncio.Event,
    ) -> AgentInfo:
        transcript = Transcript(confinement.workdir, request.progress, request.remark)
        client = AcpClient(
            workdir=confinement.workdir,
            rights=confinement.rights,
            writable=confinement.writable,
            grants=Grants(),
            transcript=transcript,
            terminals=Terminals(confinement.workdir, confinement.start),
            remark=request.remark,
        )
        start_s = min(self._start_s, self.timeout_s(request))
        # a slow agent is also slow to start
        settings = replace(self._turn_settings(request, start_s), timeout_s=2 * start_s)
        return await PromptTurn(process, client, transcript, settings, request.remark).handshake(
            str(confinement.workdir.here), stopped
        )

    def _turn_settings(self, request: AgentRequest, start_s: float) -> TurnSettings:
        return TurnSettings(
            name=self.title,
            login=self._row.how_to_log_in
            if self._row is not None
            else "log in with its own command",
            authenticate=self._row.authenticate if self._row is not None else None,
            start_s=start_s,
            timeout_s=self.timeout_s(request),
            grace_s=self._grace_s,
        )


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
