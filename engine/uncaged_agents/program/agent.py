"""Headless coding programs, one run per turn. The result is what the program reports, not its exit
code alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentCheck,
    AgentFailed,
    AgentRequest,
    remark_stderr,
)
from uncaged_engine.services.processes import (
    MAX_STDERR_BYTES,
    Finished,
    kill_leftovers,
    run_program,
)

from ..process_agent import (
    SHARED_KEYS,
    ProcessAgent,
    agent_failure,
    directory_of,
    optional_texts,
    tail,
)
from .arguments import argument_of, rights_of, schema_arguments
from .output_parser import MAX_VALUE_CHARACTERS, OutputLimitExceeded, OutputReader, OutputValues
from .table import ProgramRow, row_for, title_in

OUTDATED = re.compile(
    r"unknown (option|argument|command|flag)|unexpected argument|unrecognized (option|argument|subcommand)|no such (option|command)",
    re.I,
)


class ProgramAgent(ProcessAgent):
    """Settings: row (of the table), arguments (more of them), rights (instead of the row's), and
    those of all programs.
    """

    name = "program"
    keys = ("row", "arguments", "rights", *SHARED_KEYS)

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(settings)
        self._row = row_for(settings, self.name)
        self._more = optional_texts(settings, "arguments", self.name) or ()
        self._rights = optional_texts(settings, "rights", self.name)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> str | None:
        """Return "by its own options" for a program that has some for tools, unless a person set
        ``rights`` instead.
        """
        if rights.tools is None or "rights" in settings or not row_for(settings, cls.name).named:
            return super().holds(settings, rights)
        return "held to the policy's tools by its own options" + (
            ", not to the sandbox" if rights.sandbox else ""
        )

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return title_in(settings)

    @property
    def title(self) -> str:
        return self._row.title

    def command(self, environment: Mapping[str, str]) -> list[str]:
        return self._row.argv(environment.get("PATH", ""), {})

    def check_live(self, request: AgentRequest) -> AgentCheck:
        return AgentCheck(
            level="ok",
            text=f"{self._row.title} answered",
            usage=self.answer(request).usage or {},
            asked=True,
        )

    def answer(self, request: AgentRequest) -> AgentAnswer:
        session = (
            request.session if isinstance(request.session, str) and self._row.continuing else None
        )
        if session is not None:
            try:
                return self._run(
                    request, request.repair.wording if request.repair else request.prompt, session
                )
            except LostSession:
                request.remark(f"session {session} is gone; a new one begins")
        return self._run(request, request.prompt, None)

    def _run(self, request: AgentRequest, prompt: str, session: str | None) -> AgentAnswer:
        environment, timeout_s = self.environment(request), self.timeout_s(request)
        reader = OutputReader(self._row, request.progress)
        try:
            finished = run_program(
                self._argv(request, prompt, session, environment),
                directory=directory_of(request),
                environment=environment,
                stdin=prompt.encode("utf-8", "backslashreplace")
                if self._row.prompt == "stdin"
                else b"",
                timeout_s=timeout_s,
                cancel=request.cancel,
                scratch=request.scratch,
                key=request.key,
                grace_s=self._grace_s,
                max_stdout_bytes=1 << 16,
                on_stdout=reader,
            )
        except OutputLimitExceeded as exc:
            raise AgentFailed(f"{self._row.title} was stopped: {exc}") from exc
        except OSError as exc:
            raise self.start_failure(exc) from exc
        finally:
            reader.calls.keep(request.trace)
            kill_leftovers(request.scratch, request.key)  # its children may have left its group
        remark_stderr(request.remark, finished.stderr, max_bytes=MAX_STDERR_BYTES)
        values = reader.finish()
        add_stderr_values(self._row, finished.stderr, values)
        return self._result(finished, values, timeout_s, session)

    def _argv(
        self,
        request: AgentRequest,
        prompt: str,
        session: str | None,
        environment: Mapping[str, str],
    ) -> list[str]:
        row = self._row
        parts: dict[str, Sequence[str]] = {
            "rights": self._rights if self._rights is not None else rights_of(row, request),
            "more": self._more,
            "continue": [word.replace("{session}", session) for word in row.continuing]
            if session is not None
            else (),
            "schema": schema_arguments(row, request),
            "prompt": [argument_of(prompt, request.scratch)],
        }
        return row.argv(environment.get("PATH", ""), parts)

    def _result(
        self, finished: Finished, values: OutputValues, timeout_s: float, session: str | None
    ) -> AgentAnswer:
        """Return the answer, or raise why there is none."""
        title, usage = self._row.title, values.usage
        more: dict[str, object] = {
            "exitCode": finished.exit_code,
            "stdout": tail(finished.stdout),
            "stderr": tail(finished.stderr),
        }
        if usage:
            more["usage"] = usage
        self.expect_end(finished, timeout_s, more)
        answer = values.texts.get("answer")
        if finished.exit_code == 0 and values.ended and not values.failed and answer is not None:
            if len(answer) > MAX_VALUE_CHARACTERS:
                raise AgentFailed(
                    f"{title} answered with more than {MAX_VALUE_CHARACTERS} characters", more=more
                )
            return AgentAnswer(
                text=answer, usage=usage or None, session=values.texts.get("session")
            )
        raise self._failure(finished, values, more, session)

    def _failure(
        self,
        finished: Finished,
        values: OutputValues,
        more: Mapping[str, object],
        session: str | None,
    ) -> AgentFailed | EnvironmentLacks | LostSession:
        row, code = self._row, finished.exit_code
        meaning = row.exits.get(code)
        text = (
            values.texts.get("why")
            or tail(finished.stderr).strip()
            or tail(finished.stdout).strip()
        )[-2000:]
        if session is not None and any(word in text for word in row.lost):
            return LostSession()
        if (meaning is not None and meaning.lacks) or any(word in text for word in row.lacks):
            return EnvironmentLacks(
                f"{row.title}: {meaning.says if meaning else text}", remedy=row.how_to_log_in
            )
        if code != 0 and not values.texts.get("answer", "").strip() and OUTDATED.search(text):
            return EnvironmentLacks(
                f"{row.title} does not know what we ask of it ({text})",
                remedy=f"bring it up to date ({row.install})",
            )
        if meaning is not None:
            what = f"failed: {meaning.says} (exit code {code})"
        elif code < 0:
            what = f"was ended by signal {-code}"
        elif values.failed or code > 0:
            what = "failed" if code == 0 else f"failed with exit code {code}"
        else:
            what = "ended without a result"
            text = text if not values.noise else f"what it printed cannot be read: {text}"
        return agent_failure(f"{row.title} {what}: {text or 'it said nothing'}", text, more)


class LostSession(Exception):
    """The session to continue no longer exists."""


def add_stderr_values(row: ProgramRow, stderr: bytes, values: OutputValues) -> None:
    """Add the values that the row's patterns find on standard error."""
    text = stderr.decode("utf-8", "replace")
    for name, pattern in row.stderr.items():
        found = re.findall(pattern, text)
        if found:
            values.texts[name] = str(found[-1])
