"""Terminals of an agent: commands in the worktree, with bounded output, ended with their children
when the turn ends.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Protocol

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.processes import Child, OutputBuffer

from ..tools.commands import Commands
from ..tools.working_directory import ToolError, WorkingDirectory
from .loop import drain, wait_for_exit

MAX_TERMINALS = 32
MAX_OUTPUT_BYTES = 1 << 20
LONGEST_S = 3600.0
NOT_RUN = 126
DRAIN_S = 0.25
"""How long after a command's end its output may stay open in the hands of what it left running."""


class Terminal(Protocol):
    """Command of an agent. done: it has ended; status: how, negative for a signal. close: end it
    with its children; must be awaited.
    """

    output: OutputBuffer
    done: asyncio.Event
    status: int | None

    def kill(self) -> None: ...

    async def close(self) -> None: ...


Start = Callable[[Sequence[str], Path, Mapping[str, str], OutputBuffer], Terminal]
"""Function that starts a command in a directory with the variables that the agent adds."""


class Terminals:
    """Terminals of one turn."""

    def __init__(self, workdir: WorkingDirectory, start: Start) -> None:
        self._workdir = workdir
        self._start = start
        self._numbers = count(1)
        self._terminals: dict[str, Terminal] = {}

    def create(
        self,
        command: str,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        directory: str | None,
        max_bytes: int | None,
    ) -> str:
        """Start a command and return its id. Without arguments it is a line for the shell: agents
        send both.

        Raises:
            ToolError: it may not run there, cannot be started, or too many run already.
        """
        if len(self._terminals) >= MAX_TERMINALS:
            raise ToolError(f"{MAX_TERMINALS} terminals are open; release some first")
        for name, value in variables.items():
            if not name or "=" in name or "\0" in name + value:
                raise ToolError(f"{name!r} is not a variable's name")
        where = self._workdir.here if directory is None else self._workdir.resolve(directory)
        argv = [command, *arguments] if arguments else ["/bin/sh", "-c", command]
        output = OutputBuffer(
            max_bytes=MAX_OUTPUT_BYTES
            if max_bytes is None
            else min(max(max_bytes, 0), MAX_OUTPUT_BYTES),
            keep_last=True,
        )
        try:
            terminal = self._start(argv, where, variables, output)
        except (OSError, ValueError) as exc:
            raise ToolError(f"{command!r} cannot be started: {exc}") from exc
        name = f"terminal-{next(self._numbers)}"
        self._terminals[name] = terminal
        return name

    def find(self, name: str) -> Terminal:
        """Return a terminal; ToolError if there is none, or it was released."""
        if name not in self._terminals:
            raise ToolError(f"there is no terminal {name!r}")
        return self._terminals[name]

    async def release(self, name: str) -> None:
        terminal = self.find(name)
        del self._terminals[name]
        await terminal.close()

    async def close(self) -> None:
        """End all of them."""
        terminals, self._terminals = [*self._terminals.values()], {}
        for terminal in terminals:
            terminal.kill()
        for terminal in terminals:
            await terminal.close()


class LocalTerminal:
    """Command that runs as the user, in a group of its own. It is reaped last, so that its process
    id is not reused.
    """

    def __init__(
        self,
        argv: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        output: OutputBuffer,
        *,
        environment: Mapping[str, str],
    ) -> None:
        """Start it; what *environment* says goes before *variables*. OSError or ValueError when
        that cannot be done.
        """
        self.output = output
        self.done = asyncio.Event()
        self.status: int | None = None
        self._process = Child.start(
            argv,
            directory=directory,
            environment={**variables, **environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        self._watching = asyncio.create_task(self._watch())

    def kill(self) -> None:
        self._process.kill()

    async def close(self) -> None:
        self.kill()
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await wait_for_exit(self._process)
        self._process.end()
        self.done.set()

    async def _watch(self) -> None:
        reading = asyncio.create_task(drain(self._process.stdout, self.output.take))
        try:
            await wait_for_exit(self._process)
            await asyncio.wait((reading,), timeout=DRAIN_S)
            self.status = self._process.exit_code
            self.done.set()
            await reading  # what it left running may write on until the terminal is released
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


class SandboxedTerminal:
    """Command in the script sandbox, for roles whose policy says ``sandbox``. Its output is
    complete when it has ended.

    It has a thread of its own: the sandbox ends with the thread that started it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        output: OutputBuffer,
        *,
        commands: Commands,
    ) -> None:
        """Start it; what the environment of *commands* says goes before *variables*."""
        self.output = output
        self.done = asyncio.Event()
        self.status: int | None = None
        self._cancel = Cancel()
        self._loop = asyncio.get_running_loop()
        run = replace(
            commands, environment={**variables, **commands.environment}, cancel=self._cancel
        )
        threading.Thread(
            target=self._run, args=(run, list(argv), directory), name="boxed", daemon=True
        ).start()

    def kill(self) -> None:
        self._cancel.request()

    async def close(self) -> None:
        self.kill()
        await self.done.wait()

    def _run(self, commands: Commands, argv: list[str], directory: Path) -> None:
        try:
            result = commands.run(argv, timeout_s=LONGEST_S, cwd=directory)
        except (EnvironmentLacks, ToolError, OSError) as exc:
            text, status = str(exc).encode("utf-8", "replace"), NOT_RUN
        else:
            code = result.exit_code
            text, status = (
                result.stdout + result.stderr,
                -9 if code is None else 128 - code if code > 128 else code,
            )
        self._loop.call_soon_threadsafe(self._finish, text, status)

    def _finish(self, text: bytes, status: int) -> None:
        self.output.take(text)
        self.status = status
        self.done.set()


def output_text(output: OutputBuffer) -> str:
    return output.data.decode("utf-8", "ignore" if output.truncated else "replace")


def signal_name(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
