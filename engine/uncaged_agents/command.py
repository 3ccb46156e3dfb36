"""Commands as agents: the prompt on standard input, the answer on standard output, in the worktree.

A command runs with the user's rights and without a sandbox. Bytes of the answer that are not UTF-8
become ``\\xff``.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentAway,
    AgentCheck,
    AgentFailed,
    AgentKind,
    AgentRequest,
    remark_stderr,
)
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import MAX_STDERR_BYTES, Finished, run_program
from uncaged_models.retries import is_outage

KIND = "command"
TAIL_CHARACTERS = 4000
MAX_ANSWER_BYTES = 1 << 20


class CommandAgent(AgentKind):
    """Settings: argv (list), env (variables for the program), timeoutSeconds, graceSeconds (between
    TERM and KILL).
    """

    name = KIND
    about = ""

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(settings, "argv", "env", "timeoutSeconds", "graceSeconds", kind=KIND)
        self._argv = check.texts(settings, "argv", kind=KIND)
        self._env = check.variables(settings, "env", kind=KIND)
        self._timeout_s = check.seconds(settings, "timeoutSeconds", float("inf"), kind=KIND)
        self._grace_s = check.seconds(settings, "graceSeconds", 5.0, kind=KIND)

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object]:
        return {"argv": split_command(word)}

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return program_in(settings)

    def check(self, request: AgentRequest) -> AgentCheck:
        return AgentCheck(
            level="ok",
            text=f"{find_program(self._argv[0], {**request.environment, **self._env})} is there",
        )

    def answer(self, request: AgentRequest) -> AgentAnswer:
        environment = {**request.environment, **self._env}
        timeout_s = min(request.timeout_s, self._timeout_s)
        directory = request.worktree or empty_directory(request.scratch)
        try:
            finished = run_program(
                [find_program(self._argv[0], environment), *self._argv[1:]],
                directory=directory,
                environment=environment,
                stdin=request.prompt.encode(),
                timeout_s=timeout_s,
                cancel=request.cancel,
                scratch=request.scratch,
                key=request.key,
                grace_s=self._grace_s,
                max_stdout_bytes=MAX_ANSWER_BYTES,
            )
        except OSError as exc:
            raise EnvironmentLacks(
                f"the agent's program {self._argv[0]!r} cannot be started: {exc.strerror or exc}",
                remedy="fix argv in config.yaml",
            ) from exc
        remark_stderr(request.remark, finished.stderr, max_bytes=MAX_STDERR_BYTES)
        return AgentAnswer(text=self._text_of(finished, timeout_s))

    def _text_of(self, finished: Finished, timeout_s: float) -> str:
        output = {"stdout": tail(finished.stdout), "stderr": tail(finished.stderr)}
        program = Path(self._argv[0]).name
        if finished.cancelled:
            raise AgentFailed(f"{program} was stopped", more=output)
        if finished.timed_out:
            raise AgentFailed(
                f"{program} gave no answer within {timeout_s:g} s and was stopped",
                kind="timeout",
                more=output,
            )
        if finished.exit_code < 0:
            raise AgentFailed(
                f"{program} was ended by signal {-finished.exit_code}",
                more={"signal": -finished.exit_code, **output},
            )
        if finished.exit_code > 0:
            last = output["stderr"].strip() or output["stdout"].strip() or "it said nothing"
            raise agent_failure(
                f"{program} failed with exit code {finished.exit_code}: {last}",
                last,
                {"exitCode": finished.exit_code, **output},
            )
        if finished.overlong:
            raise AgentFailed(
                f"{program} answered with more than {MAX_ANSWER_BYTES} bytes",
                more={"stderr": output["stderr"]},
            )
        return finished.stdout.decode("utf-8", "backslashreplace")


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


def empty_directory(scratch: Path) -> Path:
    """Return the directory for a flow without a workspace; the caller's directory is never used."""
    directory = scratch / "empty"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def tail(data: bytes) -> str:
    """Return the end of an output as text."""
    text = data.decode("utf-8", "backslashreplace")
    return text if len(text) <= TAIL_CHARACTERS else f"…{text[-TAIL_CHARACTERS:]}"


def agent_failure(message: str, words: str, more: Mapping[str, object]) -> AgentFailed:
    """Return the failure of an agent that ended with an error: `AgentAway` if *words*, its own
    message, report an outage.
    """
    return AgentAway(message, more=more) if is_outage(words) else AgentFailed(message, more=more)
