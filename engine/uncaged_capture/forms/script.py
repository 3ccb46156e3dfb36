"""Capture of a script flow: the kept commands and file changes of a trace as one bash script.

Each command is a part of the script as the agent ran it, in its own subshell; what its file tools
did is done by bash itself. Values of parameters are variables, never text of the script.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass, field

from ..calls import Command, FileEdit, FileLook, FileWrite, FlowCall, Other, TraceCall, WebRead
from ..commands import unsteady_parts
from ..selecting import Dropped, Selection, select
from ..values import Parameter, parameters_of
from ..wording import wording_of
from .access import (
    Access,
    access_of,
    add_changed,
    add_hosts,
    add_made_with_directories,
    check_destruction,
)
from .form import Captured, default_of
from .results import Results
from .rewriting import (
    Replacements,
    ShellVariable,
    literal_texts,
    opened_documents,
    quoted,
    rewrite_command,
    rewrite_text,
)
from .script_lines import RELATIVE, REPLACE, in_shell, sends, shown

__all__ = ["Expected", "ScriptCapture", "capture_script"]

_HEAD = "set -eu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a kept call printed when it was recorded: the head of its output, and the number of
    characters of the whole; -1 if that is not known.
    """

    number: int
    head: str
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCapture:
    """A captured script. printed: what it must print. sends: the number of the first call that may
    change something at a host; None if none does. writes_outside: it writes outside of the
    workspace. unsteady: what makes its results differ from run to run.
    """

    captured: Captured
    printed: tuple[Expected, ...]
    kept: tuple[int, ...]
    sends: int | None
    writes_outside: bool
    unsteady: tuple[str, ...]

    def step_of(self, number: int) -> int:
        """Return the step of the flow that a call became, from 1."""
        return self.kept.index(number) + 1


def capture_script(
    calls: Sequence[TraceCall],
    *,
    name: str,
    prompt: str,
    answer: str,
    named: Mapping[str, str] | None = None,
) -> ScriptCapture:
    """Return the script that does what the calls of a role step did.

    Args:
        named: values of parameters by name, instead of those of the prompt.
    Raises:
        RefusedError: nothing was done that a script can do again, or nothing may be made of it.
    """
    selection = _selected(calls, answer, prompt)
    commands = [call.action.text for call in selection.kept if isinstance(call.action, Command)]
    check_destruction(commands)
    texts = [text for call in selection.kept for text in _value_texts(call)]
    parameters = parameters_of(texts, prompt, named)
    if named and (lost := set(named) - {one.name for one in parameters}):
        raise RefusedError(
            f"nothing that was done has the value of {', '.join(sorted(lost))}; its calls:"
            " uncaged-workflow thread show THREAD --trace"
        )
    return _Writer(selection, parameters).write(name, prompt)


def _selected(calls: Sequence[TraceCall], answer: str, prompt: str) -> Selection:
    """Return the selection without what a script cannot do or need not do."""
    selection = select(calls, answer=answer, prompt=prompt)
    kept, dropped = [], list(selection.dropped)
    for call in selection.kept:
        reason = _left_out(call, selection)
        if reason:
            dropped.append(Dropped(call=call, reason=reason))
        else:
            kept.append(call)
    if not kept:
        raise RefusedError(
            "no command and no change of a file is left of what was done, or the answer has no text"
            " of their results; no script flow is made of it. Left out: "
            + "; ".join(
                f"call {one.call.number} ({one.call.tool}): {one.reason}" for one in dropped[:10]
            )
        )
    dropped.sort(key=lambda one: one.call.number)
    numbers = {call.number for call in kept}
    uses = tuple(use for use in selection.uses if use.number in numbers)
    return Selection(kept=tuple(kept), dropped=tuple(dropped), uses=uses)


def _left_out(call: TraceCall, selection: Selection) -> str:
    match call.action:
        case FlowCall(flow=flow):
            return f"it is a call of the flow {flow}; --as task captures those"
        case WebRead():
            return "a script does not read pages as the agent's tool does"
        case FileLook(whole=whole) if not (whole and selection.is_in_answer(call)):
            return "a script does not need to look at a file before it changes it"
        case Command() | FileWrite() | FileEdit() | FileLook() | Other():
            return ""


def _value_texts(call: TraceCall) -> list[str]:
    """Return the texts of a call in which values of the prompt may recur."""
    match call.action:
        case Command(text=text):
            # numbers of fields and lines in the code of awk and sed
            numbers = re.findall(
                r"\$(\d+)|(?<![\w.])(\d+)[pdq](?!\w)|\{(\d+)\.\.|\.\.(\d+)\}", text
            )
            return [
                *literal_texts(text),
                *(number for found in numbers for number in found if number),
            ]
        case FileWrite(path=path, text=text):
            return [path, text]
        case FileEdit(path=path, old=old, new=new):
            return [path, old, new]
        case FileLook(path=path):
            return [path]
        case _:
            return []


@dataclass(slots=True)
class _Writer:
    """Writer of one script."""

    selection: Selection
    parameters: tuple[Parameter, ...]
    found: Replacements = field(default_factory=Replacements)

    def write(self, name: str, prompt: str) -> ScriptCapture:
        body, parameters = self._body()
        commands = self._commands()
        access = self._access(commands, parameters)
        recipe = {
            "version": 1,
            "parameters": [self._declared(one) for one in parameters],
            "script": {"language": "bash", "body": body, "arguments": []},
            "sandbox": {**access.sandbox(), "maxExecutionTime": 300},
            "source": {"type": "captured"},
        }
        secrets = {one.secret: tuple(access.programs) for one in parameters if one.secret}
        captured = Captured(
            recipe=recipe,
            wording=wording_of(name, prompt, parameters, self.parameters),
            parameters=parameters,
            steps=tuple(shown(call) for call in self.selection.kept),
            dropped=self.selection.dropped,
            remarks=tuple(
                f"{name} cannot be a parameter: {why}"
                for name, why in self.found.stuck.items()
                if name.startswith("PARAM_")
            ),
            secrets=secrets,
        )
        sending = next((call.number for call in self.selection.kept if sends(call)), None)
        unsteady = tuple(
            dict.fromkeys(part for text, _ in commands for part in unsteady_parts(text))
        )
        return ScriptCapture(
            captured=captured,
            printed=self._printed(),
            kept=tuple(call.number for call in self.selection.kept),
            sends=sending,
            writes_outside=any(path.startswith(("/", "~", "$", "..")) for path in access.write),
            unsteady=unsteady,
        )

    def _body(self) -> tuple[str, tuple[Parameter, ...]]:
        """Return the script, and the parameters that it has. A value that is a part of some syntax
        is no parameter anywhere, so that no run has half of a change.
        """
        parameters = self.parameters
        while True:
            variables = [
                ShellVariable(name=_variable(one.name), value=one.value, type=one.type)
                for one in parameters
            ]
            stuck = self.found.stuck
            self.found = Replacements(stuck=dict(stuck))
            results = Results(self.selection, variables)
            parts = [self._part(call, variables, results) for call in self.selection.kept]
            held = {name for name in self.found.stuck if name.startswith("PARAM_")}
            kept = tuple(
                one
                for one in parameters
                if _variable(one.name) not in held and _variable(one.name) in self.found.used
            )
            if kept == parameters:
                break
            parameters = kept
        for variable in (one for one in results.variables() if self._is_open(one)):
            raise RefusedError(
                f"{variable.value!r}, which a command printed, became a part of the code of another;"
                " no script flow is made of it"
            )
        head = [_HEAD]
        if any(isinstance(call.action, FileEdit) for call in self.selection.kept):
            head.append(REPLACE)
        head += [
            RELATIVE.format(name=_variable(one.name))
            for one in parameters
            if one.type == "path" and not one.value.startswith(("/", "~"))
        ]
        return "\n".join([*head, *parts]) + "\n", parameters

    def _is_open(self, variable: ShellVariable) -> bool:
        """Tell whether what a command printed would be read as code."""
        name = variable.name
        return name in self.found.stuck or (name in self.found.literal and variable.type == "text")

    def _part(self, call: TraceCall, variables: Sequence[ShellVariable], results: Results) -> str:
        """Return the lines of one call."""
        known = [*variables, *results.variables_of(call)]
        match call.action:
            case Command(text=text, directory=directory):
                line = rewrite_command(opened_documents(text), known, self.found)
                line = in_shell(line, text, directory)
            case FileWrite(path=path, text=text):
                target = self._word(path, known)
                content = rewrite_text(text, known, self.found, path=path)
                folder = posixpath.dirname(path)
                made = f"mkdir -p -- {self._word(folder, known)}\n" if folder else ""
                line = f"{made}printf '%s' {content} > {target}"
            case FileEdit(path=path, old=old, new=new, everywhere=everywhere):
                words = [
                    self._word(path, known),
                    rewrite_text(old, known, self.found, path=path),
                    rewrite_text(new, known, self.found, path=path),
                    *(["all"] if everywhere else []),
                ]
                line = f"replace {' '.join(words)}"
            case FileLook(path=path):
                line = f"cat -- {self._word(path, known)}"
            case _:
                line = ":"
        return results.stored(call, line, shown=self._prints(call))

    def _word(self, text: str, variables: Sequence[ShellVariable]) -> str:
        word = rewrite_text(text, variables, self.found)
        return quoted(text) if word == "'" + text.replace("'", "'\\''") + "'" else word

    def _prints(self, call: TraceCall) -> bool:
        """Tell whether the flow prints what a call prints: all that the answer has text of, or all
        if the answer has none of any.
        """
        return self.selection.is_in_answer(call) or not any(
            self.selection.is_in_answer(one) for one in self.selection.kept
        )

    def _printed(self) -> tuple[Expected, ...]:
        found = []
        for call in self.selection.kept:
            if isinstance(call.action, Command | FileLook) and self._prints(call):
                known = call.characters - call.framed if call.characters >= 0 else -1
                found.append(Expected(number=call.number, head=call.output, characters=known))
        return tuple(found)

    def _commands(self) -> list[tuple[str, str]]:
        return [
            (call.action.text, call.action.directory)
            for call in self.selection.kept
            if isinstance(call.action, Command)
        ]

    def _access(
        self, commands: Sequence[tuple[str, str]], parameters: tuple[Parameter, ...]
    ) -> Access:
        found = access_of(commands, parameters)
        for call in self.selection.kept:
            match call.action:
                case FileWrite(path=path):
                    add_made_with_directories(found, path)
                case FileEdit(path=path):
                    add_changed(found, path)
                case FileLook(path=path):
                    found.programs["cat"] = None
                    if path.startswith(("/", "~", "..")):
                        found.read[path] = None
                case _:
                    pass
        for one in parameters:
            add_hosts(found, one.value)
        if "." in found.write:
            outside = [
                path for path in found.write if path.startswith(("/", "~", "..", "$", "param:"))
            ]
            found.write = dict.fromkeys([".", *outside])
        # what may only be read cannot be written, even in a directory that may be
        written = {path.removesuffix("/..") for path in found.write}
        found.read = {
            path: None
            for path in found.read
            if not path.startswith("param:") or not ("." in found.write or path in written)
        }
        return found

    def _declared(self, parameter: Parameter) -> dict[str, Any]:
        """Return a parameter as the recipe has it."""
        name, rules = _variable(parameter.name), {}
        kind = parameter.type if parameter.type in ("integer", "number", "path") else "string"
        if kind in ("string", "path") and not parameter.secret:
            # a path is absolute when it is checked
            is_option = name in self.found.leading and kind != "path"
            start = "(?!-)" if is_option and parameter.value[0] != "-" else ""
            inner = ".*"
            if name in self.found.literal:
                more = "".join(mark for mark in " /" if mark in parameter.value)
                inner = rf"[\w.,@:+%{more}-]*"
            if name in self.found.named:
                inner = r"[A-Za-z]\w*"
            if parameter.type == "date":
                inner = r"\d{4}-\d\d-\d\d"
            if start or inner != ".*":
                rules = {"validation": {"pattern": rf"^{start}{inner}$"}}
        return {"name": parameter.name, "type": kind, "default": default_of(parameter), **rules}


def _variable(name: str) -> str:
    """Return the environment variable of a parameter."""
    return "PARAM_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
