"""Terminals in the script sandbox, for roles whose policy says ``sandbox``. Their output is complete when the command has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import Cancel

from ..tools.commands import Commands
from ..tools.place import ToolError
from .terminal import TerminalOutput

LONGEST_S = 3600.0
NOT_RUN = 126


class SandboxedTerminal:
    """Command in a thread of its own: the sandbox ends with the thread that started it."""

    def __init__(
        self, argv: Sequence[str], directory: Path, variables: Mapping[str, str], output: TerminalOutput, *, commands: Commands
    ) -> None:
        """Start it; what the environment of *commands* says goes before *variables*."""
        self.output = output
        self.done = asyncio.Event()
        self.status: int | None = None
        self._cancel = Cancel()
        self._loop = asyncio.get_running_loop()
        run = replace(commands, environment={**variables, **commands.environment}, cancel=self._cancel)
        threading.Thread(target=self._run, args=(run, list(argv), directory), name="boxed", daemon=True).start()

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
            text, status = result.stdout + result.stderr, -9 if code is None else 128 - code if code > 128 else code
        self._loop.call_soon_threadsafe(self._finish, text, status)

    def _finish(self, text: bytes, status: int) -> None:
        self.output.take(text)
        self.status = status
        self.done.set()
