"""Run of tests over as many child processes as it takes: a test that ends its process is reported,
and the next child runs the rest.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .forks import ForkedChild
from .outcome import Supervisor
from .trace import LineTracer
from .wire import Message, send

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Work = Callable[[list[str], Supervisor], None]

IMPORT_S = 20.0
"""Time limit of a new child for its imports, until its first test starts."""


class ForkedRun:
    """Run of tests. command: the request. work: runs the tests that it gets, in the child. keep:
    descriptors that the child must not have.
    """

    def __init__(
        self,
        command: Message,
        memory_bytes: int,
        work: Work,
        emit: Callable[[Message], None],
        keep: tuple[int, ...],
    ) -> None:
        self._command, self._memory_bytes, self._work, self._emit, self._keep = (
            command,
            memory_bytes,
            work,
            emit,
            keep,
        )
        self._left: list[str] = list(command["tests"])
        self._current: str | None = None
        self._last: Message = {}
        self.cpu_s = 0.0

    def run(self) -> Message:
        """Run everything and return the last message."""
        command = self._command
        total_s = command["total_s"]
        used_s = 0.0
        while True:
            before = len(self._left)
            fork = ForkedChild(self._child, self._memory_bytes, self._keep)
            ending = fork.follow(self._receive, command["wall_s"] + IMPORT_S, total_s - used_s)
            used_s += fork.used_s
            fork.finish()
            self.cpu_s += fork.cpu_s
            if ending == "finished":
                return self._last
            if ending == "late":
                return {"end": "late"}
            stopped = bool(command.get("stop")) and self._current not in command.get("expected", [])
            if self._current is not None:
                self._report_end(ending, fork.cpu_s)
            if stopped or not self._left or len(self._left) == before:
                return {"end": ending}

    def _child(self, commands: int, answers: int) -> None:  # noqa: ARG002 - this child gets no commands
        command = self._command
        lines = (
            LineTracer(command["cover_sources"], bool(command.get("types")), command.get("only"))
            if command.get("cover")
            else None
        )
        supervisor = Supervisor(
            Path(command["root"]),
            lambda message: send(answers, message),
            command["cpu_limit_s"],
            command["wall_s"],
            lines,
        )
        self._work(list(self._left), supervisor)
        send(answers, {"end": "finished"})

    def _receive(self, message: Message) -> None:
        if "start" in message:
            self._current = message["start"]
        elif "end" in message:
            self._last = message
        else:
            if "test" in message:
                self._forget(message["test"])
            self._emit(message)

    def _report_end(self, ending: str, cpu_s: float) -> None:
        name, outcome = self._current, "timeout" if ending == "timeout" else "died"
        self._emit({"test": name, "outcome": outcome, "cpu_s": cpu_s})
        self._forget(str(name))

    def _forget(self, name: str) -> None:
        self._current = None
        if name in self._left:
            self._left.remove(name)


def run_each(items: Any, left: list[str], command: Message, supervisor: Supervisor) -> None:
    """Run the tests that are left, in the child. With "stop", end at the first failure of a test
    that was not expected to fail.
    """
    known, wanted = set(items.names), set(left)
    missing = [name for name in left if name not in known]
    for name in missing:
        supervisor.emit({"test": name, "outcome": "missing", "cpu_s": 0.0})
    if missing and command.get("stop"):
        return
    names = [
        name
        for name in (items.names if command.get("suite") else left)
        if name in known and name in wanted
    ]
    expected = set(command.get("expected", []))
    quick = bool(command.get("quick")) and command["mode"] == "warm"
    for name, outcome in zip(names, items.run(names, supervisor, quick)):  # noqa: B905 - Python 3.8
        if command.get("stop") and outcome != "passed" and name not in expected:
            return
