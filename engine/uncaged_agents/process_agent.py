"""Base class of agents that are a program of this machine: the settings, the environment and the
failures that they share.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.door.agents import AgentAway, AgentCheck, AgentFailed, AgentKind, AgentRequest
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import Finished
from uncaged_models.retries import is_outage

TAIL_CHARACTERS = 4000
SHARED_KEYS = ("env", "timeoutSeconds", "graceSeconds")


class ProcessAgent(AgentKind):
    """Settings: env (variables for the program), timeoutSeconds, graceSeconds (between TERM and
    KILL), and the kind's own.
    """

    name: ClassVar[str]
    about = ""

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Check the settings against the kind's `keys`."""
        check.known(settings, *self.keys, kind=self.name)
        self._env = check.variables(settings, "env", kind=self.name)
        self._timeout_s = check.seconds(settings, "timeoutSeconds", float("inf"), kind=self.name)
        self._grace_s = check.seconds(settings, "graceSeconds", 5.0, kind=self.name)

    @property
    def title(self) -> str:
        """Return the program's name for messages."""
        raise NotImplementedError

    def command(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Return the command that starts the program.

        Raises:
            EnvironmentLacks: it is not there.
        """
        raise NotImplementedError

    def check(self, request: AgentRequest) -> AgentCheck:
        program = self.command(self.environment(request))[0]
        return AgentCheck(level="ok", text=f"{program} is there")

    def environment(self, request: AgentRequest) -> dict[str, str]:
        return {**request.environment, **self._env}

    def timeout_s(self, request: AgentRequest) -> float:
        return min(request.timeout_s, self._timeout_s)

    def expect_end(self, finished: Finished, timeout_s: float, more: Mapping[str, object]) -> None:
        """Raise AgentFailed for a program that was stopped. more: for the failure's record."""
        if finished.cancelled:
            raise AgentFailed(f"{self.title} was stopped", more=more)
        if finished.timed_out:
            raise AgentFailed(
                f"{self.title} gave no answer within {timeout_s:g} s and was stopped",
                kind="timeout",
                more=more,
            )

    def start_failure(self, problem: OSError) -> EnvironmentLacks:
        return EnvironmentLacks(
            f"{self.title} cannot be started: {problem.strerror or problem}", remedy="fix that"
        )


def optional_texts(settings: Mapping[str, object], key: str, kind: str) -> tuple[str, ...] | None:
    """Return a list of texts; None if the settings have none."""
    return check.texts(settings, key, kind=kind) if key in settings else None


def directory_of(request: AgentRequest) -> Path:
    """Return the worktree, or an empty directory for a flow without a workspace; the caller's
    directory is never used.
    """
    if request.worktree is not None:
        return request.worktree
    directory = request.scratch / "empty"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program on the caller's PATH.

    Raises:
        EnvironmentLacks: it is not there.
    """
    found = shutil.which(name, path=environment.get("PATH", ""))
    if found is None:
        where = "at that path" if "/" in name else "on PATH"
        raise EnvironmentLacks(
            f"the agent's program {name!r} is not {where}",
            remedy="install it, or set argv of the agent in config.yaml",
        )
    return found


def split_command(text: str) -> list[str]:
    """Return the words of a command line as a shell reads them; UsageError if a quotation is left
    open.
    """
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"the command of the agent, {text!r}, is not well quoted: {exc}") from exc


def program_in(settings: Mapping[str, object]) -> str:
    """Return the program that unchecked settings name in ``argv``; "" if there is none."""
    argv = settings.get("argv")
    return str(argv[0]) if isinstance(argv, list) and argv else ""


def tail(data: bytes | bytearray, max_characters: int = TAIL_CHARACTERS) -> str:
    """Return the end of an output as text."""
    text = data.decode("utf-8", "backslashreplace")
    return text if len(text) <= max_characters else f"…{text[-max_characters:]}"


def agent_failure(message: str, words: str, more: Mapping[str, object]) -> AgentFailed:
    """Return the failure of an agent that ended with an error: `AgentAway` if *words*, its own
    message, report an outage.
    """
    return AgentAway(message, more=more) if is_outage(words) else AgentFailed(message, more=more)
