"""Scripted agents: answers from a YAML file, the same at every run, for demos and tests.

Either one list for the whole thread, in order, each entry naming the role that it expects::

    - role: planner
      answer: Two phases.                # the text
      meta: {status: planned}            # appended as the fenced block
    - role: coder
      files: {src/add.py: "..."}         # written into the worktree first
      meta: {status: all-done}

or a list per role (``planner: [...]``). Further keys of an entry: ``delay_s``, ``fail`` (the agent
fails with this message), ``lack`` (the machine lacks something, at the first attempt only),
``delete`` (paths), ``usage``. Which entry is next follows from the answers in the thread's journal,
repairs included, so that a restart continues where it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import cast

from uncaged_bundles.errors import DamagedError, EnvironmentLacks, UsageError
from uncaged_engine.door.agents import AgentAnswer, AgentCheck, AgentFailed, AgentKind, AgentRequest
from uncaged_engine.services import agent_settings as check

KIND = "scripted"
KEYS = frozenset({"role", "answer", "meta", "files", "delete", "delay_s", "fail", "lack", "usage"})

Entry = Mapping[str, object]


class ScriptedAgent(AgentKind):
    """Agent that answers from a script. Settings: file (path of the script)."""

    name = KIND
    about = ""
    keys = ("file",)

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(settings, *self.keys, kind=KIND)
        self._path = Path(check.text(settings, "file", kind=KIND))

    @classmethod
    def parse(cls, word: str) -> Mapping[str, object]:
        return {"file": word}

    @classmethod
    def describe(cls, settings: Mapping[str, object]) -> str:
        return str(settings.get("file", ""))

    def check(self, request: AgentRequest) -> AgentCheck:
        del request
        script = read_script(self._path)
        count = sum(map(len, script.values())) if isinstance(script, dict) else len(script)
        return AgentCheck(
            level="ok", text=f"{self._path} has {count} answer{'' if count == 1 else 's'}"
        )

    def answer(self, request: AgentRequest) -> AgentAnswer:
        entry = pick(read_script(self._path), request, self._path)
        delay_s = cast("float", entry.get("delay_s", 0))
        if delay_s and request.cancel.wait(min(delay_s, request.timeout_s)):
            raise AgentFailed("the scripted agent was stopped")
        if delay_s > request.timeout_s:
            raise AgentFailed(
                f"the scripted agent gave no answer within {request.timeout_s:g} s", kind="timeout"
            )
        if "lack" in entry and request.attempt == 1:
            raise EnvironmentLacks(str(entry["lack"]))
        change_files(entry, request.worktree)
        if "fail" in entry:
            raise AgentFailed(str(entry["fail"]))
        return AgentAnswer(
            text=text_of(entry), usage=cast("Mapping[str, object] | None", entry.get("usage"))
        )


def read_script(path: Path) -> list[Entry] | dict[str, list[Entry]]:
    """Return a checked script.

    Raises:
        EnvironmentLacks: there is no such file. UsageError: it is no script; the message has
            the entry's place.
    """
    from uncaged_bundles.storage.document import load_yaml

    try:
        raw = load_yaml(path.read_bytes(), str(path))
    except OSError as exc:
        raise EnvironmentLacks(
            f"the script {path} cannot be read ({exc.strerror})", remedy="bring it back"
        ) from exc
    except DamagedError as exc:
        raise UsageError(str(exc)) from exc
    if isinstance(raw, list):
        return [
            check_entry(entry, f"{path}: entry {index + 1}", ordered=True)
            for index, entry in enumerate(raw)
        ]
    if isinstance(raw, dict) and all(isinstance(entries, list) for entries in raw.values()):
        return {
            str(role): [
                check_entry(entry, f"{path}: {role}, entry {index + 1}", ordered=False)
                for index, entry in enumerate(entries)
            ]
            for role, entries in raw.items()
        }
    raise UsageError(f"{path}: must be a list of answers, or for each role a list of answers")


def check_entry(entry: object, where: str, *, ordered: bool) -> Entry:
    if isinstance(entry, str) and not ordered:
        return {"answer": entry}
    if not isinstance(entry, dict):
        raise UsageError(f"{where} must be a mapping, not {entry!r}")
    unknown = sorted(str(key) for key in entry if key not in KEYS)
    if unknown:
        raise UsageError(
            f"{where} has the unknown key {unknown[0]!r} (known: {', '.join(sorted(KEYS))})"
        )
    if ordered and not isinstance(entry.get("role"), str):
        raise UsageError(f"{where} must name its role")
    if entry.keys().isdisjoint({"answer", "meta", "fail", "lack"}):
        raise UsageError(f"{where} must have one of answer, meta, fail, lack")
    for key, kinds, what in (
        ("answer", str, "text"),
        ("fail", str, "text"),
        ("lack", str, "text"),
        ("files", dict, "a mapping of paths to texts"),
        ("delete", list, "a list of paths"),
        ("delay_s", (int, float), "a number of seconds"),
        ("usage", dict, "a mapping of numbers"),
    ):
        if key in entry and not isinstance(entry[key], kinds):
            raise UsageError(f"{where}: {key} must be {what}, not {entry[key]!r}")
    return entry


def pick(script: list[Entry] | dict[str, list[Entry]], request: AgentRequest, path: Path) -> Entry:
    """Return the entry for this request.

    Raises:
        AgentFailed: the script has none, or expects another role.
    """
    role = request.role.name
    if isinstance(script, dict):
        entries, position = script.get(role, []), request.role_calls
    else:
        entries, position = script, request.calls
    if position >= len(entries):
        whose = f" for {role!r}" if isinstance(script, dict) else ""
        raise AgentFailed(
            f"the script {path} has {len(entries)} answers{whose}; {role!r} asked for number {position + 1}"
        )
    entry = entries[position]
    expected = entry.get("role", role)
    if expected != role:
        raise AgentFailed(
            f"answer {position + 1} of the script {path} is for {expected!r}, but {role!r} was asked"
        )
    return entry


def change_files(entry: Entry, worktree: Path | None) -> None:
    files = cast("Mapping[str, object]", entry.get("files", {}))
    deleted = cast("list[object]", entry.get("delete", []))
    if (files or deleted) and worktree is None:
        raise AgentFailed(
            "the script changes files, but this flow's policy gives its roles no workspace"
        )
    for name, content in files.items():
        path = inside(worktree, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content), "utf-8")
    for gone in deleted:
        inside(worktree, str(gone)).unlink(missing_ok=True)


def inside(worktree: Path | None, name: str) -> Path:
    path = PurePosixPath(name)
    if worktree is None or path.is_absolute() or ".." in path.parts:
        raise AgentFailed(f"the script names the file {name!r}, which is not inside the worktree")
    return worktree / path


def text_of(entry: Entry) -> str:
    answer = str(entry.get("answer", ""))
    if "meta" not in entry:
        return answer
    block = json.dumps(entry["meta"], ensure_ascii=False, indent=2, default=str)
    return f"{answer.rstrip()}\n\n```json\n{block}\n```\n".lstrip()
