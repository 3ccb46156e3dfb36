"""Prompt turn of the Agent Client Protocol, from the handshake to the answer or the failure.

Before the prompt, any error is a lack of the environment: not an agent, too old, not logged in.
After it, it is the agent's failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentAnswer, AgentFailed, remark_stderr
from uncaged_engine.services.processes import MAX_STDERR_BYTES, Child, OutputBuffer

from ..process_agent import TAIL_CHARACTERS, agent_failure, tail
from .client import AcpClient
from .loop import drain, wait_for_exit
from .session import (
    AUTH_REQUIRED,
    AgentInfo,
    ProtocolViolation,
    TurnSettings,
    agent_title,
    ask,
    begin,
    initialise,
    load,
    model_of,
)
from .transcript import Transcript
from .transport import LineTransport

if TYPE_CHECKING:
    from acp.connection import Connection
    from acp.schema import PromptResponse

LAST_CHARACTERS = 500
MAX_SESSION_CHARACTERS = 500
DRAIN_S = 1.0
"""How long output is read after the process has ended."""
STOPS = {
    "max_tokens": "its answer reached the limit of tokens",
    "max_turn_requests": "it reached its limit of requests for one turn",
    "refusal": "it refused to go on",
    "cancelled": "it cancelled its turn",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Prompt texts: *whole* for a new session, *again* for one that continues. session: the one to
    continue, if it still exists.
    """

    whole: str
    again: str
    session: str | None


class PermissionNeeded(Exception):
    """A person's permission is needed before the agent can continue."""


class PromptTurn:
    """Turn with one process; `answer` and `handshake` each run a whole one in the event loop."""

    def __init__(
        self,
        process: Child,
        client: AcpClient,
        transcript: Transcript,
        settings: TurnSettings,
        remark: Callable[[str], None],
    ) -> None:
        self._process = process
        self._client = client
        self._transcript = transcript
        self._settings = settings
        self._remark = remark
        self._stderr = OutputBuffer(max_bytes=MAX_STDERR_BYTES, keep_last=True)
        self._begun = False

    async def answer(self, prompt: Prompt, directory: str, stopped: asyncio.Event) -> AgentAnswer:
        """Ask in a session in *directory* and return the answer; *stopped* asks to leave off.

        Raises:
            AgentFailed, EnvironmentLacks
        """
        return await self._connected(
            lambda connection, stop: self._prompt(connection, prompt, directory, stop), stopped
        )

    async def handshake(self, directory: str, stopped: asyncio.Event) -> AgentInfo:
        """Open a session in *directory* and ask nothing. Raises: EnvironmentLacks."""
        return await self._connected(
            lambda connection, stop: self._unless_stopped(
                stop, self._within_start_time(self._open_session(connection, directory))
            ),
            stopped,
        )

    async def _connected(
        self,
        work: Callable[[Connection, asyncio.Task[object]], Awaitable[T]],
        stopped: asyncio.Event,
    ) -> T:
        """Connect, run *work* within the timeout, and close everything."""
        from acp import RequestError
        from acp.connection import Connection

        transport = await self._connect()
        self._transcript.on_overflow = transport.stop
        connection = Connection(self._client.handle, transport)
        tasks = [
            asyncio.create_task(self._read_stderr()),
            asyncio.create_task(self._watch(transport)),
            asyncio.create_task(stopped.wait()),
        ]
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await work(connection, tasks[-1])
        except TimeoutError as exc:
            message = f"{self._settings.name} gave no answer within {self._settings.timeout_s:g} s and was stopped"
            raise AgentFailed(message, kind="timeout", more=self._more()) from exc
        except ConnectionError as exc:
            raise await self._connection_failure(transport) from exc
        except RequestError as exc:
            raise self._request_failure(exc) from exc
        except ProtocolViolation as exc:
            raise self._failure(str(exc)) from exc
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await connection.close()
            self._transcript.finish()

    async def _prompt(
        self, connection: Connection, prompt: Prompt, directory: str, stop: asyncio.Task[object]
    ) -> AgentAnswer:
        session, continued = await self._unless_stopped(
            stop, self._within_start_time(self._begin(connection, prompt.session, directory))
        )
        self._client.session, self._begun = session, True
        self._transcript.begin(continued=continued)
        reply = await self._ask(
            connection, session, prompt.again if continued else prompt.whole, stop
        )
        if reply.stop_reason != "end_turn":
            raise self._failure(STOPS[reply.stop_reason], stopReason=reply.stop_reason)
        kept = session if len(session) <= MAX_SESSION_CHARACTERS and session.isprintable() else None
        return AgentAnswer(
            text=self._transcript.answer(),
            usage=self._transcript.usage(reply.usage) or None,
            session=kept,
        )

    async def _begin(
        self, connection: Connection, known: str | None, directory: str
    ) -> tuple[str, bool]:
        """Initialise and return the session, and whether it is the known one."""
        capabilities = await initialise(connection, self._settings, self._remark)
        if known is not None:
            self._client.session = known
            if await load(connection, capabilities, known, directory, self._remark):
                return known, True
        return (await begin(connection, self._settings, directory)).session_id, False

    async def _open_session(self, connection: Connection, directory: str) -> AgentInfo:
        capabilities = await initialise(connection, self._settings, self._remark)
        opened = await begin(connection, self._settings, directory)
        return AgentInfo(agent=agent_title(capabilities), model=model_of(opened))

    async def _within_start_time(self, work: Awaitable[T]) -> T:
        """Return the result of work before the prompt; after the start timeout the agent may need a
        person.
        """
        try:
            async with asyncio.timeout(self._settings.start_s):
                return await work
        except TimeoutError as exc:
            raise EnvironmentLacks(
                f"{self._settings.name} did not take part in the Agent Client Protocol within {self._settings.start_s:g} s"
                f"{self._stderr_end()}",
                remedy=f"it may be too old for it, or wait for a person: {self._settings.login}",
            ) from exc

    async def _ask(
        self, connection: Connection, session: str, text: str, stop: asyncio.Task[object]
    ) -> PromptResponse:
        """Send the prompt and wait for the end of the turn; when it has to stop earlier, send a
        cancel and wait the grace time.
        """
        from acp import schema, text_block
        from acp.utils import notify_model

        request = schema.PromptRequest(
            session_id=session, prompt=[text_block(text.encode("utf-8", "replace").decode())]
        )
        answer = asyncio.create_task(
            ask(connection, "session/prompt", request, schema.PromptResponse)
        )
        needs_permission = asyncio.create_task(self._client.needs_permission.wait())
        try:
            await asyncio.wait(
                (answer, stop, needs_permission), return_when=asyncio.FIRST_COMPLETED
            )
            if not answer.done() or needs_permission.done():
                await notify_model(
                    connection, "session/cancel", schema.CancelNotification(session_id=session)
                )
                await asyncio.wait((answer,), timeout=self._settings.grace_s)
                if needs_permission.done():
                    raise PermissionNeeded
                if not is_whole(answer):
                    raise self._stop_failure()
            return answer.result()
        finally:
            for task in (answer, needs_permission):
                task.cancel()
            await asyncio.gather(answer, needs_permission, return_exceptions=True)

    async def _unless_stopped(self, stop: asyncio.Task[object], work: Awaitable[T]) -> T:
        """Return the result of *work*, unless a stop is requested first."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                raise self._stop_failure()
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _connect(self) -> LineTransport:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        read_transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        write_transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), self._process.stdin
        )
        return LineTransport(
            reader, read_transport, asyncio.StreamWriter(write_transport, protocol, None, loop)
        )

    async def _read_stderr(self) -> None:
        """Keep the end of the standard error."""
        try:
            await drain(self._process.stderr, self._stderr.take)
        finally:
            remark_stderr(self._remark, bytes(self._stderr.data), max_bytes=MAX_STDERR_BYTES)

    async def _watch(self, transport: LineTransport) -> None:
        """Hang up soon after the process has ended: its children may hold its output open."""
        await wait_for_exit(self._process)
        await asyncio.sleep(DRAIN_S)
        transport.hang_up()

    async def _connection_failure(self, transport: LineTransport) -> AgentFailed | EnvironmentLacks:
        """Return why the connection broke."""
        if transport.problem is not None:
            return self._failure(f"{transport.problem}, and was stopped")
        try:
            async with asyncio.timeout(DRAIN_S):
                await wait_for_exit(self._process)
        except TimeoutError:
            return self._failure("it closed its output")
        code = self._process.exit_code or 0
        if code < 0:
            return self._failure(f"it was ended by signal {-code}", signal=-code)
        return self._failure(f"it ended with exit code {code}", exitCode=code)

    def _request_failure(self, error: Exception) -> AgentFailed | EnvironmentLacks:
        """Return the failure that an error response means."""
        code, data = getattr(error, "code", None), getattr(error, "data", None)
        details = data.get("details") or data.get("message") if isinstance(data, Mapping) else data
        what = f"{error}: {details}" if isinstance(details, str) and details else str(error)
        what = what.encode("utf-8", "replace").decode()[:TAIL_CHARACTERS]
        if code == AUTH_REQUIRED:
            return EnvironmentLacks(
                f"{self._settings.name} is not logged in ({what})", remedy=self._settings.login
            )
        return self._failure(what)

    def _failure(self, what: str, **more: object) -> AgentFailed | EnvironmentLacks:
        """Return a lack of the environment before the prompt, a failure of the agent after it."""
        if self._begun:
            return agent_failure(
                f"{self._settings.name} gave no answer: {what}{self._stderr_end()}",
                what,
                {**more, **self._more()},
            )
        return EnvironmentLacks(
            f"{self._settings.name} cannot begin: {what}{self._stderr_end()}",
            remedy=f"if it is too old for the Agent Client Protocol, bring it up to date; if it is not set up, {self._settings.login}",
        )

    def _stop_failure(self) -> AgentFailed:
        return AgentFailed(f"{self._settings.name} was stopped", more=self._more())

    def _more(self) -> dict[str, object]:
        """Return the fields of a failure's record besides its message."""
        stderr, used = tail(self._stderr.data), self._transcript.usage(None)
        return {**({"stderr": stderr} if stderr else {}), **({"usage": used} if used else {})}

    def _stderr_end(self) -> str:
        stderr = tail(self._stderr.data, LAST_CHARACTERS).strip()
        return f"; it said last: {stderr}" if stderr else ""


def is_whole(answer: asyncio.Task[PromptResponse]) -> bool:
    """Return whether a turn ended by itself just before the cancel reached it."""
    done = answer.done() and not answer.cancelled() and answer.exception() is None
    return done and answer.result().stop_reason == "end_turn"
