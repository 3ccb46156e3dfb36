"""Calls of a trace by what they did, read from the names and arguments that each kind of agent
leaves.

A call is recognized if its name and all of its arguments are those of a known tool; any other one
is `Other`, and no meaning is guessed from it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, assert_never

from uncaged_bundles.records import dataclass
from uncaged_engine.services.threads import StepTrace

__all__ = [
    "Action",
    "Command",
    "FileEdit",
    "FileLook",
    "FileWrite",
    "FlowCall",
    "Other",
    "TraceCall",
    "WebRead",
    "calls_of",
    "texts_in",
]

_END = re.compile(r"\[(?P<end>exit code (?P<code>-?\d+)|it took [^\]]*)(?P<more>[^\]]*)\]\n")
"""First line of the result of the tool `run` of models."""
_COMPLAINTS = "[standard error]\n"
_CUT_KEYS = {"head", "characters"}
_REMARKS = frozenset(
    {
        "description",
        "timeout",
        "timeoutSeconds",
        "run_in_background",
        "is_background",
        "instruction",
    }
)
"""Arguments of other agents' tools that change nothing about what is done."""
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "zsh", "/bin/zsh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A shell command. directory: where it ran, "" for the agent's own directory."""

    text: str
    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """A whole text file was written."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A passage of a text file was replaced. everywhere: each occurrence was."""

    path: str
    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLook:
    """A file was read, or a directory was listed or searched, which changes nothing. whole: the
    result is the text of the file.
    """

    path: str
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowCall:
    """A flow ran. arguments: as the agent gave them, its prompt among them."""

    flow: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRead:
    """A page was fetched, or the web was searched."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A call of which nothing is known. why: in words, for the list of what was left out."""

    why: str


Action = Command | FileWrite | FileEdit | FileLook | FlowCall | WebRead | Other


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCall:
    """One call.

    failure: why it failed, in words; "" if it did not. output: the kept head of its result, without
    what the agent's tool added. characters: of the whole result as the tool gave it; -1 if the
    agent's protocol does not say the result. framed: number of characters before the output.
    digest: of the whole result.
    """

    number: int
    tool: str
    action: Action
    arguments: object
    failure: str = ""
    output: str = ""
    characters: int = -1
    framed: int = 0
    digest: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the output is the whole output, not the head of a longer one."""
        return self.characters == self.framed + len(self.output)

    def texts(self) -> tuple[str, ...]:
        """Return the texts of its arguments."""
        return tuple(texts_in(self.arguments))


def calls_of(
    trace: StepTrace, *, flows: Mapping[str, str] | None = None, top: str = ""
) -> tuple[TraceCall, ...]:
    """Return the calls of a trace in order.

    Args:
        flows: names of flows by the names of tools that run them. top: the directory that the agent
            worked in; paths in it become relative.
    """
    return tuple(_call(call, flows or {}, top) for call in trace.calls)


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts and numbers in JSON data as text, without the names of keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _call(call: Mapping[str, Any], flows: Mapping[str, str], top: str) -> TraceCall:
    tool, arguments = str(call["tool"]), call["arguments"]
    result = call.get("result", {})
    head = str(result.get("head", ""))
    action = _action(tool, str(call.get("kind", "")), arguments, flows, top)
    end = _END.match(head) if tool == "run" and isinstance(action, Command) else None
    failure = ""
    if end is not None and end["code"] != "0":
        failure = end["end"]
    if call["failed"]:
        failure = failure or " ".join(head.split())[:120] or "the agent says so"
    return TraceCall(
        number=int(call["number"]),
        tool=tool,
        action=action,
        arguments=arguments,
        failure=failure,
        output=head[end.end() :] if end is not None else head,
        characters=int(result.get("characters", -1)),
        framed=end.end() if end is not None else 0,
        digest=str(result.get("digest", "")),
    )


def _action(tool: str, kind: str, arguments: object, flows: Mapping[str, str], top: str) -> Action:
    if not isinstance(arguments, Mapping):
        return Other(why="its arguments are no object")
    if set(arguments) == _CUT_KEYS:
        return Other(
            why=f"its arguments have {arguments['characters']} characters, too many to keep"
        )
    if tool in flows:
        return FlowCall(flow=flows[tool], arguments=arguments)
    fields = {name: value for name, value in arguments.items() if name not in _REMARKS}
    for names, required, optional, read in _TOOLS:
        if (
            (tool in names or kind in names)
            and required <= set(fields) <= required | optional
            and all(_fits(name, value) for name, value in fields.items())
        ):
            found = read(fields)
            if found is not None:
                return _inside(found, top)
    return Other(why="it is not a tool of which a flow can be made")


def _fits(name: str, value: object) -> bool:
    """Check an argument's type; those of commands may be lists of words."""
    if name in ("all", "replace_all", "replaceAll", "ignoreCase"):
        return isinstance(value, bool)
    if name in ("offset", "limit", "depth"):
        return isinstance(value, int)
    if name == "command" and isinstance(value, list):
        return all(isinstance(word, str) for word in value)
    return isinstance(value, str)


def _command(fields: Mapping[str, Any]) -> Command | None:
    text = fields["command"]
    if isinstance(text, str) and text.startswith(("bash -", "/bin/bash -", "sh -", "/bin/sh -")):
        try:
            words = shlex.split(text)
        except ValueError:
            return None
        text = words if len(words) == 3 else text
    if not isinstance(text, str):
        if len(text) != 3 or text[0] not in _SHELLS or text[1] not in ("-c", "-lc"):
            return None
        text = text[2]
    return Command(text=text, directory=str(fields.get("cwd", fields.get("directory", ""))))


def _edit(path: str, old: str, new: str, everywhere: str) -> Callable[[Mapping[str, Any]], Action]:
    """Return the reader of a tool that replaces text, whose arguments have these names."""

    def read(fields: Mapping[str, Any]) -> Action:
        return FileEdit(
            path=fields[path],
            old=fields[old],
            new=fields[new],
            everywhere=fields.get(everywhere, False),
        )

    return read


def _write(path: str, text: str) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: FileWrite(path=fields[path], text=fields[text])


def _look(path: str, *, whole: bool = False) -> Callable[[Mapping[str, Any]], Action]:
    return lambda fields: FileLook(
        path=fields.get(path, "."), whole=whole and not {"offset", "limit"} & set(fields)
    )


_Row = tuple[
    frozenset[str], frozenset[str], frozenset[str], Callable[[Mapping[str, Any]], Action | None]
]


def _row(
    names: str, required: str, optional: str, read: Callable[[Mapping[str, Any]], Action | None]
) -> _Row:
    return frozenset(names.split()), frozenset(required.split()), frozenset(optional.split()), read


_TOOLS: Iterable[_Row] = (
    # the tools of models
    _row("run", "command", "", _command),
    _row("read", "path", "offset limit", _look("path", whole=True)),
    _row("list", "", "path depth", _look("path")),
    _row("search", "pattern", "path files ignoreCase", _look("path")),
    _row("edit", "path old new", "all", _edit("path", "old", "new", "all")),
    _row("write", "path text", "", _write("path", "text")),
    # Claude Code, and agents of the Agent Client Protocol by the kinds of their calls
    _row("Bash execute command_execution", "command", "cwd directory", _command),
    _row("Read read", "file_path", "offset limit", _look("file_path")),
    _row("Glob Grep search", "pattern", "path glob include output_mode", _look("path")),
    _row("Edit edit", "file_path old_string new_string", "replace_all",
         _edit("file_path", "old_string", "new_string", "replace_all")),
    _row("Write edit", "file_path content", "", _write("file_path", "content")),
    _row("edit", "filePath oldString newString", "replaceAll",
         _edit("filePath", "oldString", "newString", "replaceAll")),
    _row("edit", "filePath content", "", _write("filePath", "content")),
    _row("read", "filePath", "offset limit", _look("filePath")),
    _row("read", "absolute_path", "offset limit", _look("absolute_path")),
    _row("WebFetch fetch", "url", "prompt format", lambda fields: WebRead(address=fields["url"])),
)  # fmt: skip
"""Names of tools or kinds of calls, required and optional arguments, and how they are read."""


def _inside(action: Action, top: str) -> Action:
    """Return the action with paths inside *top* relative to it."""
    match action:
        case Command(text=text, directory=directory):
            return Command(text=relative_text(text, top), directory=_relative(directory, top))
        case FileWrite(path=path, text=text):
            return FileWrite(path=_relative(path, top), text=text)
        case FileEdit(path=path, old=old, new=new, everywhere=everywhere):
            return FileEdit(path=_relative(path, top), old=old, new=new, everywhere=everywhere)
        case FileLook(path=path, whole=whole):
            return FileLook(path=_relative(path, top), whole=whole)
        case FlowCall() | WebRead() | Other():
            return action
        case _:
            assert_never(action)


def _relative(path: str, top: str) -> str:
    if not path or not top or not PurePosixPath(path).is_relative_to(top):
        return path
    return str(PurePosixPath(path).relative_to(top))


def relative_text(text: str, top: str) -> str:
    """Return a command's text with *top* as `.` where it is a path or the beginning of one."""
    if not top:
        return text
    return re.sub(rf"(?<![\w./-]){re.escape(top)}(?=/|[\s\"';&|)]|$)", ".", text)
