"""Coding agent for tests, on the agent's side of the protocol library. Its turn is scripted by the
prompt or by its arguments.

``python acp_agent.py WORD...``; a word is one action, in order, with its argument after a colon.
``roles FILE`` plays the roles of `solve-issue` instead: FILE holds the edits as JSON. The agent
keeps its sessions in its home, as agents do.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    RequestError,
    run_agent,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
    update_user_message_text,
)
from acp.helpers import start_edit_tool_call
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    Cost,
    EnvVariable,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    ToolCallLocation,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

OPTIONS = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]
PLANNED = {
    "status": "planned",
    "phases": [{"name": "fix", "description": "Mend it.", "acceptance": "The tests pass."}],
}
DONE = {"status": "all-done", "completedPhases": ["fix"], "filesChanged": [], "summary": "Mended."}
APPROVED = {"status": "approved", "issues": []}
REJECTED = {"status": "rejected", "issues": ["one edit is missing"]}


class TestAgent:
    """Agent as a process, with at most one turn at a time."""

    client: Client

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._cancelled = asyncio.Event()
        self._cwd = Path()
        self._text = ""
        self._calls = 0
        self._session = ""
        self._store = Path(os.environ.get("HOME", "/tmp")) / "sessions"

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        if "mute" in self._words:
            await asyncio.Event().wait()
        version = 0 if "old" in self._words else min(protocol_version, PROTOCOL_VERSION)
        return InitializeResponse(
            protocol_version=version,
            agent_capabilities=AgentCapabilities(load_session="forgetful" not in self._words),
            agent_info=Implementation(name="test-agent", version="7"),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        if f"method:{method_id}" not in self._words:
            raise RequestError.invalid_params({"details": method_id})
        self._words = [word for word in self._words if word != "locked"]

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if "locked" in self._words:
            raise RequestError.auth_required({"details": "no key"})
        if "broken" in self._words:
            raise RequestError.internal_error({"details": "no model is configured"})
        self._cwd = Path(cwd)
        self._store.mkdir(exist_ok=True)
        name = f"session-{len(list(self._store.iterdir())) + 1}"
        (self._store / name).write_text("")
        models = [word.removeprefix("model:") for word in self._words if word.startswith("model:")]
        return NewSessionResponse(
            session_id=name, config_options=[choice_of(model) for model in models] or None
        )

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        if not (self._store / session_id).exists():
            raise RequestError.resource_not_found(session_id)
        self._cwd = Path(cwd)
        for line in (self._store / session_id).read_text().splitlines():
            await self.client.session_update(session_id, update_user_message_text(line))
            await self.client.session_update(
                session_id, update_agent_message_text('```json\n{"status": "stuck"}\n```')
            )
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        note(f"cancelled {session_id}", wait=False)
        if "stubborn" not in self._words:
            self._cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self._session = session_id
        self._text = prompt[0].text
        with (self._store / session_id).open("a") as memory:
            memory.write(self._text.splitlines()[0] + "\n")
        words = (
            role_words(self._text, self._words[1]) if self._words[:1] == ["roles"] else self._words
        )
        for word in words:
            name, _colon, rest = word.partition(":")
            act = getattr(self, f"do_{name.replace('-', '_')}", None)
            if act is not None:
                reply = await act(rest)
                if reply is not None:
                    return PromptResponse(stop_reason=reply)
        usage = Usage(total_tokens=180, input_tokens=100, output_tokens=50, cached_read_tokens=30)
        return PromptResponse(
            stop_reason="end_turn", usage=usage if "frugal" not in words else None
        )

    # What the words mean.

    async def do_say(self, text: str) -> None:
        for part in re.findall(r".{1,7}", text.replace("\\n", "\n"), re.DOTALL):
            await self.client.session_update(self._session, update_agent_message_text(part))

    async def do_think(self, text: str) -> None:
        await self.client.session_update(self._session, update_agent_thought_text(text))

    async def do_block(self, text: str) -> None:
        await self.do_say(f"\n```json\n{text}\n```\n")

    async def do_heard(self, _: str) -> None:
        prompts = len((self._store / self._session).read_text().splitlines())
        await self.do_say(
            f"heard {self._text.splitlines()[0]} in {self._session}, which has {prompts} prompts"
        )

    async def do_write(self, rest: str) -> None:
        """Write PATH=TEXT after asking for permission."""
        path, _, text = rest.partition("=")
        if await self._leave("edit", f"Write {path}", path):
            try:
                await self.client.write_text_file(
                    self._session, str(self._cwd / path), text.replace("\\n", "\n")
                )
            except RequestError as exc:
                await self.do_say(f"[{exc}]")
                return
        await self._done("completed")

    async def do_edit(self, rest: str) -> None:
        """Edit one passage of a file through the client's read and write methods."""
        edit = json.loads(rest)
        place = str(self._cwd / edit["path"])
        text = (await self.client.read_text_file(self._session, place)).content
        await self.do_write(f"{edit['path']}={text.replace(edit['old'], edit['new'])}")

    async def do_force(self, rest: str) -> None:
        """Write PATH=TEXT without asking."""
        path, _, text = rest.partition("=")
        try:
            await self.client.write_text_file(self._session, str(self._cwd / path), text)
            await self.do_say(f"[wrote {path}]")
        except RequestError as exc:
            await self.do_say(f"[{exc}]")

    async def do_read(self, rest: str) -> None:
        path, _, part = rest.partition("=")
        line, limit = (int(number) for number in part.split("+")) if part else (None, None)
        try:
            found = await self.client.read_text_file(
                self._session, str(self._cwd / path), line=line, limit=limit
            )
            await self.do_say(f"[{found.content}]")
        except RequestError as exc:
            await self.do_say(f"[{exc}]")

    async def do_ask(self, rest: str) -> None:
        kind, _, path = rest.partition("=")
        await self.do_say(f"[{kind} {path}: {await self._leave(kind, f'{kind} {path}', path)}]")

    async def do_run(self, command: str) -> None:
        """Run a command in a terminal of the client."""
        try:
            made = await self.client.create_terminal(
                self._session, command, env=[EnvVariable(name="MINE", value="m")]
            )
            ended = await self.client.wait_for_terminal_exit(self._session, made.terminal_id)
            output = await self.client.terminal_output(self._session, made.terminal_id)
            await self.client.release_terminal(self._session, made.terminal_id)
            await self.do_say(
                f"[{ended.exit_code if ended.exit_code is not None else ended.signal}: {output.output.strip()}]"
            )
        except RequestError as exc:
            await self.do_say(f"[{exc}]")

    async def do_argv(self, rest: str) -> None:
        words = json.loads(rest)
        made = await self.client.create_terminal(
            self._session, words[0], args=words[1:], cwd=str(self._cwd), output_byte_limit=20
        )
        await self.client.wait_for_terminal_exit(self._session, made.terminal_id)
        output = await self.client.terminal_output(self._session, made.terminal_id)
        await self.do_say(f"[{output.output}|{output.truncated}]")

    async def do_endless(self, command: str) -> None:
        """Leave a terminal open."""
        made = await self.client.create_terminal(self._session, command)
        await self.do_say(f"[{made.terminal_id}]")

    async def do_killed(self, command: str) -> None:
        made = await self.client.create_terminal(self._session, command)
        await self.client.kill_terminal(self._session, made.terminal_id)
        ended = await self.client.wait_for_terminal_exit(self._session, made.terminal_id)
        await self.do_say(f"[{ended.signal}]")

    async def do_cost(self, rest: str) -> None:
        used, _, amount = rest.partition("=")
        cost = Cost(amount=float(amount), currency="USD")
        await self.client.session_update(
            self._session,
            UsageUpdate(session_update="usage_update", used=int(used), size=1000, cost=cost),
        )

    async def do_stop(self, reason: str) -> str:
        return reason

    async def do_error(self, message: str) -> None:
        raise RequestError(-32603, "Internal error", {"details": message})

    async def do_unlocked(self, _: str) -> None:
        raise RequestError.auth_required()

    async def do_die(self, code: str) -> None:
        print("my last words", file=sys.stderr, flush=True)  # noqa: T201 - that is how it speaks
        if code == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(int(code))

    async def do_deaf(self, _: str) -> None:
        os.close(1)
        await asyncio.Event().wait()

    async def do_hang(self, _: str) -> str:
        note("hangs", wait=True)
        await self._cancelled.wait()
        return "cancelled"

    async def do_late(self, _: str) -> None:
        """Receive a cancel after the answer is complete."""
        await self._cancelled.wait()

    async def do_hang_once(self, _: str) -> str | None:
        """Hang with a child process until stopped; only the first time, and only if a test asks for
        it.
        """
        wanted = Path(os.environ["HOME"]) / "hang-once"
        if not wanted.exists():
            return None
        wanted.unlink()
        await self.do_leave("far")
        (self._cwd / "half.txt").write_text("half")
        while not self._cancelled.is_set():
            await self.do_say("still at it ")
            await asyncio.sleep(0.02)
        return "cancelled"

    async def do_leave(self, way: str) -> None:
        """Start a process that outlives the agent, in its group or in its own session."""
        left = subprocess.Popen(
            ["sleep", "600"],
            start_new_session=way == "far",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await self.do_say(f"[left {left.pid}]")

    async def do_hold(self, _: str) -> None:
        """Start a process that keeps the agent's output open."""
        subprocess.Popen(["sleep", "600"], start_new_session=True)

    async def do_flood(self, what: str) -> None:
        flood = {
            "line": b"x" * (1 << 20),
            "noise": b"this is no message\n" * (1 << 12),
            "text": json.dumps(
                {
                    "jsonrpc": "2.0",
                    "method": "session/update",
                    "params": {
                        "sessionId": self._session,
                        "update": {
                            "sessionUpdate": "agent_message_chunk",
                            "content": {"type": "text", "text": "y" * 60_000},
                        },
                    },
                }
            ).encode()
            + b"\n",
            "requests": json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 999,
                    "method": "fs/read_text_file",
                    "params": {"sessionId": self._session, "path": str(self._cwd / "big")},
                }
            ).encode()
            + b"\n",
        }[what]
        os.set_blocking(1, True)
        while True:
            os.write(1, flood)

    async def do_strange(self, _: str) -> None:
        """Send messages that no version of the protocol defines."""
        os.set_blocking(1, True)
        for message in (
            {
                "jsonrpc": "2.0",
                "method": "session/update",
                "params": {"sessionId": self._session, "update": {"sessionUpdate": "of_2031"}},
            },
            {"jsonrpc": "2.0", "method": "session/update", "params": [1]},
            {"jsonrpc": "2.0", "method": "_mine/hello", "params": None},
            {"jsonrpc": "2.0", "id": {"a": 1}, "result": 1},
            {"jsonrpc": "2.0", "id": 1, "error": "no"},
            [1, 2],
            "text",
        ):
            os.write(1, json.dumps(message).encode() + b"\n")
        os.write(1, b"no json\n" + b"[" * 100_000 + b"\n" + b'{"jsonrpc":"2.0","id":NaN}\n')
        os.set_blocking(1, False)

    async def do_wrong(self, _: str) -> None:
        """Send requests that an agent may not send."""
        errors = []
        connection: Any = self.client
        for method, params in (
            ("fs/read_text_file", {"sessionId": "another", "path": "/etc/passwd"}),
            ("fs/read_text_file", {"path": 7}),
            ("elicitation/create", {}),
            ("terminal/output", {"sessionId": self._session, "terminalId": "none"}),
        ):
            try:
                await connection._conn.send_request(method, params)
            except RequestError as exc:
                errors.append(f"{exc}")
        await self.do_say(f"[{'; '.join(errors)}]")

    async def do_commit(self, message: str) -> None:
        """Commit through a terminal, as a committer does."""
        who = "git -c user.name=T -c user.email=t@example.org"
        script = f"git add -A && {who} commit -qm '{message}' && git branch --show-current && git rev-parse HEAD"
        made = await self.client.create_terminal(self._session, script)
        await self.client.wait_for_terminal_exit(self._session, made.terminal_id)
        output = (await self.client.terminal_output(self._session, made.terminal_id)).output
        lines = output.split()
        if len(lines) != 2:
            await self.do_block(
                json.dumps({"status": "unrecoverable", "error": output or "nothing"})
            )
            return
        await self.do_block(
            json.dumps({"status": "committed", "branch": lines[0], "commitSha": lines[1]})
        )

    async def _leave(self, kind: Any, title: str, path: str) -> str:
        """Ask for permission; return the chosen option, or nothing."""
        self._calls += 1
        place = str(self._cwd / path)
        call = (
            start_edit_tool_call(f"call-{self._calls}", title, place, "")
            if kind == "edit"
            else start_tool_call(
                f"call-{self._calls}",
                title,
                kind=kind,
                locations=[ToolCallLocation(path=place)] if path else [],
            )
        )
        await self.client.session_update(self._session, call)
        update = ToolCallUpdate(
            tool_call_id=f"call-{self._calls}", raw_input={"path": place} if path else None
        )
        reply: Any = (await self.client.request_permission(self._session, update, OPTIONS)).outcome
        return (
            "" if reply.outcome == "cancelled" or reply.option_id == "no" else str(reply.option_id)
        )

    async def _done(self, status: Any) -> None:
        await self.client.session_update(
            self._session, update_tool_call(f"call-{self._calls}", status=status)
        )


def choice_of(model: str) -> SessionConfigOptionSelect:
    """A list of models with one in it."""
    only = [SessionConfigSelectOption(value=model, name=model)]
    return SessionConfigOptionSelect(
        type="select", id="model", name="Model", category="model", current_value=model, options=only
    )


def role_words(prompt: str, file: str) -> list[str]:
    """Return the actions of the role in the prompt: the coder makes the first edit, and the others
    after the reviewer asked for them.
    """
    found = re.search(r"^# Your role: (\S+)", prompt, re.MULTILINE)
    role, again = found.group(1) if found else "", "You were here before" in prompt
    edits = json.loads(Path(file).read_text())
    match role:
        case "planner":
            return ["say:I plan.", f"block:{json.dumps(PLANNED)}", "cost:500=0.01"]
        case "coder":
            chosen = edits[1:] if again else edits[:1]
            pause = [] if again else ["hang-once"]
            return [
                "say:I mend it.",
                *pause,
                *(f"edit:{json.dumps(edit)}" for edit in chosen),
                "say:Done.",
                f"block:{json.dumps(DONE)}",
            ]
        case "reviewer":
            return ["run:git diff --stat", f"block:{json.dumps(APPROVED if again else REJECTED)}"]
        case _:
            return ["say:Committing.", "commit:Mend it"]


def note(text: str, *, wait: bool) -> None:
    """Notify the test through a named pipe; without a reader, wait or continue."""
    mark = os.environ.get("MARKS")
    if mark is None:
        return
    try:
        pipe = os.open(mark, os.O_WRONLY | (0 if wait else os.O_NONBLOCK))
    except OSError:
        return
    os.write(pipe, f"{text}\n".encode())
    os.close(pipe)


if __name__ == "__main__":
    agent: Any = TestAgent(sys.argv[1:])  # of the protocol's methods only those that tests need
    asyncio.run(run_agent(agent))
