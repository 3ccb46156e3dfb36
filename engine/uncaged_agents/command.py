"""Commands as agents: the prompt on standard input, the answer on standard output, in the worktree.

A command runs with the user's rights and without a sandbox. Bytes of the answer that are not UTF-8
become ``\\xff``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentAnswer, AgentFailed, AgentRequest, remark_stderr
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import MAX_STDERR_BYTES, Finished, run_program

from .process_agent import (
    SHARED_KEYS,
    ProcessAgent,
    agent_failure,
    directory_of,
    find_program,
    program_in,
    split_command,
    tail,
)

MAX_ANSWER_BYTES = 1 << 20


class CommandAgent(ProcessAgent):
    """Settings: argv (list), and those of all programs."""

    name = "command"
    keys = ("argv", *SHARED_KEYS)

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(settings)
        self._argv = check.texts(settings, "argv", kind=self.name)

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object]:
        return {"argv": split_command(word)}

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return program_in(settings)

    @property
    def title(self) -> str:
        return Path(self._argv[0]).name

    def command(self, environment: Mapping[str, str]) -> list[str]:
        return [find_program(self._argv[0], environment), *self._argv[1:]]

    def answer(self, request: AgentRequest) -> AgentAnswer:
        environment, timeout_s = self.environment(request), self.timeout_s(request)
        try:
            finished = run_program(
                self.command(environment),
                directory=directory_of(request),
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
        self.expect_end(finished, timeout_s, output)
        if finished.exit_code < 0:
            raise AgentFailed(
                f"{self.title} was ended by signal {-finished.exit_code}",
                more={"signal": -finished.exit_code, **output},
            )
        if finished.exit_code > 0:
            last = output["stderr"].strip() or output["stdout"].strip() or "it said nothing"
            raise agent_failure(
                f"{self.title} failed with exit code {finished.exit_code}: {last}",
                last,
                {"exitCode": finished.exit_code, **output},
            )
        if finished.overlong:
            raise AgentFailed(
                f"{self.title} answered with more than {MAX_ANSWER_BYTES} bytes",
                more={"stderr": output["stderr"]},
            )
        return finished.stdout.decode("utf-8", "backslashreplace")
