"""Headless coding programs, one run per turn. The result is what the program reports, not its exit
code alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.rights import CHANGING, Rights
from uncaged_engine.door.agents import (
    AgentAnswer,
    AgentCheck,
    AgentFailed,
    AgentKind,
    AgentRequest,
    remark_stderr,
)
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.processes import (
    MAX_STDERR_BYTES,
    Finished,
    kill_leftovers,
    run_program,
)

from ..command import agent_failure, empty_directory, tail
from .reading import MAX_VALUE_CHARACTERS, OutputLimitExceeded, OutputReader, OutputValues
from .table import ProgramRow, row_for, title_in

KIND = "program"
STRICT_KEYWORDS = frozenset(
    {
        "type",
        "description",
        "title",
        "enum",
        "const",
        "items",
        "properties",
        "required",
        "additionalProperties",
    }
)
"""The subset of JSON Schema that services accept; any other schema is described in the prompt
alone.
"""
MAX_ARGUMENT_BYTES = 120_000
"""One argument cannot be larger than 128 KiB on Linux."""
OUTDATED = re.compile(
    r"unknown (option|argument|command|flag)|unexpected argument|unrecognized (option|argument|subcommand)|no such (option|command)",
    re.I,
)


class ProgramAgent(AgentKind):
    """Settings: row (of the table), arguments (more of them), rights (instead of the row's), env,
    timeoutSeconds, graceSeconds.
    """

    name = KIND
    about = ""

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(
            settings,
            "row",
            "arguments",
            "rights",
            "env",
            "timeoutSeconds",
            "graceSeconds",
            kind=KIND,
        )
        self._row = row_for(settings, KIND)
        self._more = (
            check.texts(settings, "arguments", kind=KIND) if "arguments" in settings else ()
        )
        self._rights = check.texts(settings, "rights", kind=KIND) if "rights" in settings else None
        self._env = check.variables(settings, "env", kind=KIND)
        self._timeout_s = check.seconds(settings, "timeoutSeconds", float("inf"), kind=KIND)
        self._grace_s = check.seconds(settings, "graceSeconds", 5.0, kind=KIND)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> str | None:
        """Return "by its own options" for a program that has some for tools, unless a person set
        ``rights`` instead.
        """
        if rights.tools is None or "rights" in settings or not row_for(settings, KIND).named:
            return super().holds(settings, rights)
        return "held to the policy's tools by its own options" + (
            ", not to the sandbox" if rights.sandbox else ""
        )

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return title_in(settings)

    def check(self, request: AgentRequest) -> AgentCheck:
        environment = {**request.environment, **self._env}
        return AgentCheck(
            level="ok", text=f"{self._row.argv(environment.get('PATH', ''), {})[0]} is there"
        )

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
        environment = {**request.environment, **self._env}
        timeout_s = min(request.timeout_s, self._timeout_s)
        reader = OutputReader(self._row, request.progress)
        try:
            finished = run_program(
                self._argv(request, prompt, session, environment),
                directory=request.worktree or empty_directory(request.scratch),
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
            raise EnvironmentLacks(
                f"{self._row.title} cannot be started: {exc.strerror or exc}", remedy="fix that"
            ) from exc
        finally:
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
        if finished.cancelled:
            raise AgentFailed(f"{title} was stopped", more=more)
        if finished.timed_out:
            raise AgentFailed(
                f"{title} gave no answer within {timeout_s:g} s and was stopped",
                kind="timeout",
                more=more,
            )
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


def rights_of(row: ProgramRow, request: AgentRequest) -> Sequence[str]:
    """Return the arguments that give the program the role's rights, as far as it has options for
    them.
    """
    rights, level = request.rights, level_of(request)
    if not row.named or (rights.tools is None and not rights.network):
        return row.rights.get(level, ())
    # nothing would keep its commands from writing
    usable = {
        *(() if level == "none" else rights.usable(writable=level == "write")),
        *(("network",) if rights.network else ()),
    } - ({"run"} if level == "read" else set())
    allowed = dict.fromkeys(
        name for tool, names in row.tools.items() if tool in usable for name in names
    )
    partly = {name.partition("(")[0] for name in allowed}
    others = dict.fromkeys(
        name
        for names in row.tools.values()
        for name in names
        if "(" not in name and name not in partly
    )
    lists = {"{allowed}": allowed, "{others}": others}
    words: list[str] = []
    for word in row.named:
        if word not in lists:
            words.append(word)
        elif lists[word]:
            words.append(",".join(lists[word]))
        else:
            words.pop()  # the option's name
    return words


def level_of(request: AgentRequest) -> str:
    """Return the role's access to the workspace: none, read or write."""
    if request.worktree is None:
        return "none"
    return (
        "write" if request.writable and any(map(request.rights.may, (*CHANGING, "run"))) else "read"
    )


def add_stderr_values(row: ProgramRow, stderr: bytes, values: OutputValues) -> None:
    """Add the values that the row's patterns find on standard error."""
    text = stderr.decode("utf-8", "replace")
    for name, pattern in row.stderr.items():
        found = re.findall(pattern, text)
        if found:
            values.texts[name] = str(found[-1])


def schema_arguments(row: ProgramRow, request: AgentRequest) -> list[str]:
    """Write the role's schema to a file and return its option, where program and schema allow
    it.
    """
    if not row.schema or not is_strict(request.role.schema):
        return []
    file = request.scratch / "schema.json"
    file.write_text(json.dumps(request.role.schema), "utf-8")
    return [word.replace("{file}", str(file)) for word in row.schema]


def is_strict(schema: object) -> bool:
    """Return whether each object is closed and requires all of its properties, by plain keywords
    alone.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return _is_plain(schema)


def _is_plain(schema: object) -> bool:
    if (
        not isinstance(schema, Mapping)
        or not set(schema) <= STRICT_KEYWORDS
        or not isinstance(schema.get("type"), str)
    ):
        return False
    if schema["type"] == "object":
        properties, required = schema.get("properties"), schema.get("required")
        if (
            not isinstance(properties, Mapping)
            or not isinstance(required, list)
            or schema.get("additionalProperties") is not False
        ):
            return False
        return set(required) == set(properties) and all(
            _is_plain(inner) for inner in properties.values()
        )
    return _is_plain(schema.get("items")) if schema["type"] == "array" else True


def argument_of(prompt: str, scratch: Path) -> str:
    """Return the prompt as one argument; one that is too long goes into a file, which the argument
    names.
    """
    if len(prompt.encode("utf-8", "backslashreplace")) <= MAX_ARGUMENT_BYTES:
        return prompt.replace("\0", "\\0")
    file = scratch / "prompt.md"
    file.write_text(prompt, "utf-8", "backslashreplace")
    return f"Read the file {file} as a whole and do what it says; it is your task."
