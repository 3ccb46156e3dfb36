"""Table of known coding agents, read and checked from one data file."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.services import agent_settings as check

FILE = Path(__file__).parent / "programs.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """Rule for the values of one event; see the head of the data file. fails: a path, or True.
    take: paths by name of the value.
    """

    when: Mapping[str, object] = field(default_factory=dict)
    take: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fails: str | bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRule:
    """Rule for the calls of tools in one event; see the head of the data file. each: path of the
    items. take: paths by name of the value.
    """

    when: Mapping[str, object] = field(default_factory=dict)
    each: str
    where: Mapping[str, object] = field(default_factory=dict)
    take: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitMeaning:
    """Meaning of an exit code. lacks: a person can fix it."""

    says: str
    lacks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow:
    """Known coding agent; see the head of the data file."""

    name: str
    use: Literal["acp", "program"]
    title: str
    programs: tuple[str, ...]
    install: str
    login: str
    variables: tuple[str, ...]
    arguments: tuple[str, ...]
    authenticate: str | None = None
    login_shows: Literal["session", "prompt"] = "session"
    prompt: Literal["stdin", "argument"] = "stdin"
    rights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    continuing: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    output: Literal["lines", "json", "text"] = "text"
    read: tuple[EventRule, ...] = ()
    calls: tuple[CallRule, ...] = ()
    stderr: Mapping[str, str] = field(default_factory=dict)
    exits: Mapping[int, ExitMeaning] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def how_to_log_in(self) -> str:
        """Return the advice, for the end of a sentence."""
        if not self.variables:
            return self.login
        return (
            f"{self.login}, or set {self.variables[0]} and name it under environment in config.yaml"
        )

    def program_on(self, path: str) -> str | None:
        """Return the program of this row that is on *path*."""
        return next(
            (place for program in self.programs if (place := shutil.which(program, path=path))),
            None,
        )

    def argv(self, path: str, parts: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the command: the program on *path* and its arguments, with *parts* put in.

        Raises:
            EnvironmentLacks: it is not installed; says how it is.
        """
        program = self.program_on(path)
        if program is None:
            raise EnvironmentLacks(
                f"{self.title} is not installed: {' or '.join(map(repr, self.programs))} is not on PATH",
                remedy=f"install it ({self.install}) and {self.login}",
            )
        words = (
            parts.get(word[1:-1], ()) if word.startswith("{") and word.endswith("}") else (word,)
            for word in self.arguments
        )
        return [program, *(word for some in words for word in some)]


@functools.cache
def table() -> Mapping[str, ProgramRow]:
    """Return all rows by name, in the order of the file."""
    import yaml

    raw = cast("dict[str, dict[str, Any]]", yaml.safe_load(FILE.read_bytes()))
    return {name: row_of(name, fields) for name, fields in raw.items()}


def row_for(settings: Mapping[str, object], kind: str) -> ProgramRow:
    """Return the row that an agent's settings name; UsageError when there is none of that kind."""
    name = check.text(settings, "row", kind=kind)
    row = table().get(name)
    if row is None or row.use != kind:
        known = ", ".join(row.name for row in table().values() if row.use == kind)
        raise UsageError(f"an agent that uses {kind!r} has no row {name!r} (known: {known})")
    return row


def title_in(settings: Mapping[str, object]) -> str:
    """Return the product that unchecked settings name by its row; "" if there is none."""
    row = table().get(str(settings.get("row")))
    return "" if row is None else row.title


def row_of(name: str, fields: Mapping[str, Any]) -> ProgramRow:
    """Return a checked row; TypeError, KeyError or ValueError if it is none."""
    unknown = sorted(
        set(fields) - (set(ProgramRow.__dataclass_fields__) - {"name", "continuing"} | {"continue"})
    )
    if unknown:
        raise ValueError(f"{name}: unknown keys {unknown}")
    return ProgramRow(
        name=name,
        use=fields["use"],
        title=fields["title"],
        programs=tuple(fields["programs"]),
        install=fields["install"],
        login=fields["login"],
        variables=tuple(fields["variables"]),
        arguments=tuple(fields["arguments"]),
        authenticate=fields.get("authenticate"),
        login_shows=fields.get("login_shows", "session"),
        prompt=fields.get("prompt", "stdin"),
        rights={level: tuple(words) for level, words in fields.get("rights", {}).items()},
        tools={tool: tuple(names) for tool, names in fields.get("tools", {}).items()},
        named=tuple(fields.get("named", ())),
        continuing=tuple(fields.get("continue", ())),
        schema=tuple(fields.get("schema", ())),
        output=fields.get("output", "text"),
        stderr=fields.get("stderr", {}),
        read=tuple(rule_of(rule) for rule in fields.get("read", ())),
        calls=tuple(CallRule(**rule) for rule in fields.get("calls", ())),
        exits={
            int(code): ExitMeaning(**meaning) for code, meaning in fields.get("exits", {}).items()
        },
        lacks=tuple(fields.get("lacks", ())),
        lost=tuple(fields.get("lost", ())),
    )


def rule_of(fields: Mapping[str, Any]) -> EventRule:
    take = {
        key: (paths,) if isinstance(paths, str) else tuple(paths)
        for key, paths in fields.get("take", {}).items()
    }
    return EventRule(
        when=fields.get("when", {}),
        take=take,
        fails=fields.get("fails", False),
        ends=fields.get("ends", False),
    )
