"""Client side of the Agent Client Protocol: answers an agent's requests for permission, files and
terminals, and refuses all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uncaged_bundles.rights import Rights

from ..tools.working_directory import ToolError, WorkingDirectory
from .grants import Grants
from .paths import read_part
from .permission import ToolCall, option_for, outside, refusal, withheld
from .terminal import Terminals, output_text, signal_name
from .transcript import Transcript

if TYPE_CHECKING:
    from acp.schema import (
        CreateTerminalRequest,
        KillTerminalRequest,
        ReadTextFileRequest,
        ReleaseTerminalRequest,
        RequestPermissionRequest,
        TerminalOutputRequest,
        WaitForTerminalExitRequest,
        WriteTextFileRequest,
    )


class AcpClient:
    """Request handler of one turn; the protocol library calls `handle` for each message."""

    def __init__(
        self,
        *,
        workdir: WorkingDirectory,
        rights: Rights,
        writable: bool,
        grants: Grants,
        transcript: Transcript,
        terminals: Terminals,
        remark: Callable[[str], None],
    ) -> None:
        from acp import schema

        self.session: str | None = None
        self.pending: Grants | None = None
        """The permission that a person has to give before the turn can continue."""
        self.needs_permission = asyncio.Event()
        self._workdir = workdir
        self._rights = rights
        self._writable = writable
        self._transcript = transcript
        self._terminals = terminals
        self._grants = grants
        self._remark = remark
        self._methods: Mapping[
            str, tuple[type[Any], Callable[[Any], Awaitable[Mapping[str, object]]]]
        ] = {
            "session/request_permission": (schema.RequestPermissionRequest, self._permission),
            "fs/read_text_file": (schema.ReadTextFileRequest, self._read),
            "fs/write_text_file": (schema.WriteTextFileRequest, self._write),
            "terminal/create": (schema.CreateTerminalRequest, self._create),
            "terminal/output": (schema.TerminalOutputRequest, self._output),
            "terminal/wait_for_exit": (schema.WaitForTerminalExitRequest, self._wait),
            "terminal/kill": (schema.KillTerminalRequest, self._kill),
            "terminal/release": (schema.ReleaseTerminalRequest, self._release),
        }

    async def handle(self, method: str, params: object, is_notification: bool) -> object:
        """Answer a request, or process a notification; a notification never raises."""
        from acp import RequestError

        if is_notification:
            if method == "session/update":
                self._transcript.take(params)
            return None
        if method not in self._methods:
            raise RequestError.method_not_found(method)
        model, answer = self._methods[method]
        request = model.model_validate(params)
        if request.session_id != self.session:
            raise RequestError.invalid_params(
                {"details": f"there is no session {request.session_id!r}"}
            )
        try:
            return await answer(request)
        except ToolError as exc:
            self._remark(f"refused {method}: {exc}")
            raise RequestError(-32603, str(exc)) from exc

    async def _permission(self, request: RequestPermissionRequest) -> Mapping[str, object]:
        asked = request.tool_call
        call = self._transcript.call(
            asked.tool_call_id, asked.model_dump(by_alias=True, exclude_none=True)
        )
        why = refusal(
            self._rights, self._workdir, call, writable=self._writable, granted=self._grants.granted
        )
        unknown = [
            path
            for path in outside(self._workdir, call)
            if path not in self._grants.granted + self._grants.denied
        ]
        if (
            unknown
            and self._rights.ask
            and withheld(self._rights, call, writable=self._writable) is None
        ):
            self.pending = replace(
                self._grants, title=call.title or call.kind, asked=tuple(unknown)
            )
            self.needs_permission.set()
            return {"outcome": {"outcome": "cancelled"}}
        option = option_for(request.options, allow=why is None)
        if why is not None:
            self._remark(f"refused {call.kind} {call.title!r}: {why}")
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": option}}

    async def _read(self, request: ReadTextFileRequest) -> Mapping[str, object]:
        self._allowed("read")
        return {
            "content": await asyncio.to_thread(
                read_part, self._workdir, request.path, request.line, request.limit
            )
        }

    async def _write(self, request: WriteTextFileRequest) -> Mapping[str, object]:
        self._allowed("edit")
        await asyncio.to_thread(self._workdir.write, request.path, request.content)
        return {}

    async def _create(self, request: CreateTerminalRequest) -> Mapping[str, object]:
        self._allowed("execute")
        variables = {variable.name: variable.value for variable in request.env or []}
        name = self._terminals.create(
            request.command, request.args or [], variables, request.cwd, request.output_byte_limit
        )
        return {"terminalId": name}

    async def _output(self, request: TerminalOutputRequest) -> Mapping[str, object]:
        terminal = self._terminals.find(request.terminal_id)
        ended = {"exitStatus": status_of(terminal.status)} if terminal.done.is_set() else {}
        text = output_text(terminal.output)
        return {"output": text, "truncated": terminal.output.truncated, **ended}

    async def _wait(self, request: WaitForTerminalExitRequest) -> Mapping[str, object]:
        terminal = self._terminals.find(request.terminal_id)
        await terminal.done.wait()
        return status_of(terminal.status)

    async def _kill(self, request: KillTerminalRequest) -> Mapping[str, object]:
        self._terminals.find(request.terminal_id).kill()
        return {}

    async def _release(self, request: ReleaseTerminalRequest) -> Mapping[str, object]:
        await self._terminals.release(request.terminal_id)
        return {}

    def _allowed(self, kind: str) -> None:
        why = refusal(self._rights, self._workdir, ToolCall(kind=kind), writable=self._writable)
        if why is not None:
            raise ToolError(why)


def status_of(status: int | None) -> dict[str, object]:
    """Return the protocol's exit status of a command."""
    if status is None or status < 0:
        return {"signal": "SIGKILL" if status is None else signal_name(status)}
    return {"exitCode": status}
