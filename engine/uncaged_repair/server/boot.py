"""First process in the sandbox: it answers commands, one at a time, and runs no code of the
repository itself.

Rule 1: it never imports the repository; of what its tests may have written, only bytecode of
libraries (`bytecode`) can run here. A warm child has collected all tests and forks for each
run; a cold run is a child of its own that imports everything anew.
Rule 2: a changed file is written before a run and restored after it.
Rule 3: every run ends with one message that has "end", even if the child is lost.
"""

from __future__ import annotations

import base64
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .cleanup import ScratchTree
from .forks import CLOCK_FACTOR, ForkedChild, reap
from .gather import few_names, gather, map_paths
from .runs import IMPORT_S, ForkedRun, run_each
from .warm import WarmProcess
from .wire import Message, MessageReader, send
from .with_pytest import version

if TYPE_CHECKING:
    from typing import Any

    from .outcome import Supervisor

WARM_SLACK_S = 60.0
"""Added to the time limit of the tests for the longest silence of a warm child."""


class CommandServer:
    """Server of one client.

    settings: root, cwd, pristine, empty (directories), sources (paths in the repository), origins
    (path to path here), paths (for imports), arguments, options, runner, memory_bytes.
    """

    def __init__(self, settings: Message, commands: int, answers: int) -> None:
        self._settings, self._commands, self._answers = settings, commands, answers
        self._root = Path(settings["root"])
        self._sources = {str(self._root / path): path for path in settings["sources"]}
        self._warm: ForkedChild | None = None

    def serve(self) -> None:
        """Send "ready", then answer commands until the client closes."""
        settings = self._settings
        os.chdir(settings["cwd"])
        map_paths(settings["origins"], [settings["cwd"], *settings["paths"]])
        found = version() if settings["runner"] == "pytest" else None
        if settings["runner"] == "pytest" and found is None:
            settings["runner"] = "unittest"
        self._emit(
            {"ready": sys.version.split()[0], "runner": settings["runner"], "version": found or ""}
        )
        tree = ScratchTree(
            self._root, Path(settings["pristine"]), [Path(path) for path in settings["empty"]]
        )
        reader = MessageReader(self._commands)
        while not reader.ended:
            for command in reader.take():
                started = time.monotonic()
                end = self._answer(command)
                tree.restore(
                    time.monotonic() - started,
                    force=command["do"] == "collect" or bool(command.get("tidy")),
                )
                self._emit(end)

    def _emit(self, message: Message) -> None:
        send(self._answers, message)

    def _answer(self, command: Message) -> Message:
        changed = {path: base64.b64decode(data) for path, data in command.get("files", {}).items()}
        original = {path: (self._root / path).read_bytes() for path in changed}
        times = {path: (self._root / path).stat().st_mtime_ns for path in changed}
        for path, data in changed.items():
            (self._root / path).write_bytes(data)
        try:
            return (
                self._collect(command)
                if command["do"] == "collect"
                else self._run(command, changed, original)
            )
        finally:
            for path, data in original.items():
                # a test replaced the file by something else: the cleanup restores the whole tree
                with contextlib.suppress(OSError):
                    (self._root / path).write_bytes(data)
                    os.utime(self._root / path, ns=(times[path], times[path]))
            if self._warm is None:
                reap()

    def _collect(self, command: Message) -> Message:
        """Start a new warm child and return the message of its collection."""
        self._end_warm()
        keep = (self._commands, self._answers)
        self._warm = ForkedChild(
            lambda commands, answers: WarmProcess(
                self._settings, self._sources, commands, answers
            ).serve(),
            self._settings["memory_bytes"],
            keep,
        )
        messages: list[Message] = []
        ending = self._warm.follow(messages.append, command["total_s"], command["total_s"])
        if ending != "finished":
            self._end_warm()
            return {"end": "timeout" if ending == "late" else ending}
        return messages[-1]

    def _run(
        self, command: Message, changed: dict[str, bytes], original: dict[str, bytes]
    ) -> Message:
        spent_s = 0.0
        if command["mode"] == "warm" and self._warm is not None:
            end = self._run_warm(self._warm, command, changed, original)
            if end["end"] != "cold":
                return end
            spent_s = end.get("cpu_s", 0.0)
        run = ForkedRun(
            command,
            self._settings["memory_bytes"],
            self._fresh_import(command),
            self._emit,
            (self._commands, self._answers),
        )
        end = run.run()
        return {**end, "cpu_s": spent_s + run.cpu_s}

    def _run_warm(
        self,
        warm: ForkedChild,
        command: Message,
        changed: dict[str, bytes],
        original: dict[str, bytes],
    ) -> Message:
        pairs = [
            [path, base64.b64encode(original[path]).decode(), base64.b64encode(data).decode()]
            for path, data in changed.items()
        ]
        last: list[Message] = [{"end": "died"}]

        def receive(message: Message) -> None:
            if "end" in message:
                last[0] = message
            else:
                self._emit(message)

        warm.ask({**command, "files": {}, "pairs": pairs})
        ending = warm.follow(
            receive,
            CLOCK_FACTOR * (command["wall_s"] + IMPORT_S) + WARM_SLACK_S,
            CLOCK_FACTOR * command["total_s"] + WARM_SLACK_S,
        )
        if ending != "finished":
            self._end_warm()
        return last[0]

    def _fresh_import(self, command: Message) -> Any:
        """Return the work of a child that imports everything itself."""

        def work(left: list[str], supervisor: Supervisor) -> None:
            names = few_names(self._settings, command)
            gather(
                self._settings,
                names,
                lambda items: run_each(items, left, command, supervisor),
                lambda: None,
                [],
            )

        return work

    def _end_warm(self) -> None:
        if self._warm is not None:
            self._warm.finish()
            self._warm = None


def main() -> None:
    """Move the protocol's descriptors out of the tests' reach, read the settings, and serve."""
    commands, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    reader = MessageReader(commands)
    settings: list[Message] = []
    while not settings and not reader.ended:
        settings = reader.take()
    os.dup2(nothing, 2)
    if settings:
        try:
            CommandServer(settings[0], commands, answers).serve()
        except BaseException as exc:
            send(answers, {"end": "broken", "fault": repr(exc)[:500]})
            raise
