"""Builder for flows of every kind, and its inverse: the flow of a bundle. Equal flows give equal
bundles, whether from a recipe or a script file.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds
from uncaged_bundles.syntax import parse_module
from uncaged_bundles.validation.validate import Bundle

from ..blocks.block import block_flow_of, write_block
from ..blocks.block_flow import BlockFlow
from ..inference import task as infer_task
from ..inference.bash import SHELLS
from ..inference.inference import infer_commands, infer_parameters
from ..scripts.script import script_in, write_foreign, write_script, write_task
from ..scripts.task_check import check_script, computed_targets, unused_parameters
from ..scripts.web import WEB_RULES, is_browser_script, literal_hosts, web_parts, write_web
from ..workflow import check_built
from .flows import WEB_SECONDS, ForeignFlow, RecipeFlow, ScriptFlow, TaskFlow, WebFlow
from .parameters import write_schema
from .recipe import language_of, script_text
from .recipe_sandbox import path_parameters
from .web_recipe import placeholders, policy_of

PROGRAMMABLE = frozenset({"python", "python3", "perl", "ruby", "node", "lua", "php"})
LANGUAGE_OF_SUFFIX = {".sh": "bash", ".bash": "bash", ".py": "python", ".ps1": "powershell"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFlow:
    """A bundle with notes for the person who adds it. active: False if the flow says that it is
    disabled.
    """

    source: bytes
    notes: tuple[str, ...]
    active: bool = True


def build_flow(flow: RecipeFlow, known_effects: EffectKinds = KNOWN_EFFECTS) -> BuiltFlow:
    """Return the bundle of a flow.

    Raises:
        BundleError: the flow cannot be built.
    """
    return BuiltFlow(
        source=check_built(write_flow(flow), flow.name, known_effects),
        notes=(*flow.notes, *_notes_on(flow)),
        active=flow.active if isinstance(flow, BlockFlow) else True,
    )


def write_flow(flow: RecipeFlow) -> bytes:
    """Return the bundle of a flow, not yet validated."""
    match flow:
        case ScriptFlow():
            return write_script(flow)
        case TaskFlow():
            return write_task(flow)
        case WebFlow():
            return write_web(flow)
        case ForeignFlow():
            return write_foreign(flow)
        case BlockFlow():
            return write_block(flow)
        case RecipeFlow():
            raise BundleError(f"{flow.name}: this is no kind of flow")
    assert_never(flow)


def read_script_file(name: str, suffix: str, text: str) -> RecipeFlow:
    """Return the flow of a script file: a task, if it has ``async def execute``, else a script of
    the operating system.
    """
    text = script_text(text, (name,))
    language = LANGUAGE_OF_SUFFIX[suffix]
    described = f"The {'task ' if is_task(language, text) else ''}script {name}{suffix}."
    shared: dict[str, Any] = {
        "name": name,
        "description": _first_comment(text) or described,
        "display_name": "",
        "source": f"file {name}{suffix}",
    }
    if is_browser_script(language, text):
        return _read_browser_script(text, shared)
    if is_task(language, text):
        guessed = [guess.fields() for guess in infer_task.parameters(text)]
        return TaskFlow(
            **shared,
            parameters=write_schema(guessed, (name,)),
            script=text,
            notes=(_parameters_note(guessed),),
        )
    inferred = infer_parameters(language, text)
    commands = list(infer_commands(language, text))
    notes = [_parameters_note(inferred.parameters)]
    notes.append(f"commands that it seems to need: {', '.join(commands) or 'none'}")
    parameters = write_schema(list(inferred.parameters), (name,))
    policy: dict[str, object] = {"executables": commands} if commands else {}
    if paths := path_parameters(parameters):
        policy["read"] = paths
    return ScriptFlow(
        **shared,
        parameters=parameters,
        notes=tuple(notes),
        language=language,
        body=text,
        arguments=inferred.arguments,
        policy=policy,
    )


def _read_browser_script(text: str, shared: dict[str, Any]) -> WebFlow:
    guessed = [guess.fields() for guess in infer_task.parameters(text)]
    hosts = literal_hosts(text)
    scope: dict[str, object] = {"type": "site", "domains": hosts} if hosts else {"type": "global"}
    return WebFlow(
        **shared,
        parameters=write_schema(guessed, (str(shared["name"]),)),
        script=text,
        scope=scope,
        policy=policy_of(scope, {}, (str(shared["name"]),)),
        notes=(_parameters_note(guessed),),
    )


def _parameters_note(parameters: Sequence[Mapping[str, object]]) -> str:
    return (
        f"parameters, by its text: {', '.join(str(part['name']) for part in parameters) or 'none'}"
    )


def flow_of(bundle: Bundle) -> RecipeFlow | None:
    """Return the flow that a bundle was built from; None if it was not built from a recipe or a
    script file.
    """
    if bundle.descriptor.kind == "block":
        return block_flow_of(bundle)
    descriptor, text = bundle.descriptor, bundle.source.decode()
    raw = descriptor.raw
    shared: dict[str, Any] = {
        "name": descriptor.name,
        "description": descriptor.description,
        "display_name": raw.get("displayName", ""),
        "source": raw.get("source", ""),
        "parameters": descriptor.parameters,
        "patterns": _texts(raw.get("patterns")),
        "aliases": _texts(raw.get("aliases")),
        "examples": tuple(_list(raw.get("examples"))),
        "on_failure": raw.get("onFailure", ""),
    }
    values = _constants(text)
    script, kept = values.get("script"), values.get("kept")
    if descriptor.kind == "script" and isinstance(script, dict) and "drive_script(" in text:
        return ScriptFlow(
            **shared,
            language=str(script["language"]),
            body=str(script["body"]),
            repeat=script.get("repeat") is True,
            arguments=tuple(_list(values.get("arguments"))),
            form=_form(text),
            policy=descriptor.policy.limits.get("script", {}),
        )
    if "unsupported" in raw and isinstance(kept, dict):
        fields: dict[str, Any] = {
            "kind": descriptor.kind,
            "language": kept["language"],
            "text": kept["text"],
            "scope": kept.get("scope"),
        }
        return ForeignFlow(**shared, **fields)
    if descriptor.kind == "web":
        steps, script = web_parts(text)
        web: dict[str, Any] = {
            "steps": steps,
            "script": script,
            "scope": raw.get("scope", {}),
            "max_seconds": raw.get("maxSeconds", WEB_SECONDS),
            "policy": descriptor.policy.limits.get("browser", {}),
        }
        return WebFlow(**shared, **web) if steps or script else None
    task = script_in(text) if descriptor.kind == "task" else None
    return (
        None
        if task is None
        else TaskFlow(**shared, script=task, policy=dict(descriptor.policy.limits))
    )


def is_task(language: str, text: str) -> bool:
    """Tell whether a script file is a task."""
    if language != "python" or language_of(text) != "python":
        return False
    try:
        tree = parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "execute"
        for node in tree.body
    )


def _notes_on(flow: RecipeFlow) -> list[str]:
    match flow:
        case ScriptFlow():
            return _notes_on_script(flow)
        case TaskFlow():
            return _notes_on_task(flow)
        case WebFlow():
            return _notes_on_web(flow)
        case ForeignFlow():
            return [
                f"it is kept, but {flow.language} is not run here; see 'uncaged-workflow edit {flow.name} --script FILE.py'"
            ]
        case _:
            return []


def _notes_on_script(flow: ScriptFlow) -> list[str]:
    listed = flow.policy.get("executables")
    commands = listed if isinstance(listed, list) else []
    return [
        *_unread_parameters(flow),
        *(
            f"{name} runs whatever program it is given: it can do more than its name says"
            for name in commands
            if name in PROGRAMMABLE
        ),
        *(
            f"{name} runs a script of its own: the commands in it are not inferred"
            for name in commands
            if flow.language == "bash" and name in SHELLS
        ),
    ]


def _unread_parameters(flow: ScriptFlow) -> list[str]:
    properties = flow.parameters.get("properties", {})
    on_command_line = {str(part.get("param")) for part in flow.arguments if isinstance(part, dict)}
    names = (
        [name for name in properties if name not in on_command_line]
        if isinstance(properties, Mapping)
        else []
    )
    unread = [name for name in names if f"PARAM_{variable_of(name)}" not in flow.body]
    return [
        f"the script never reads the parameter {name!r} (as PARAM_{variable_of(name)})"
        for name in unread
    ]


def _notes_on_task(flow: TaskFlow) -> list[str]:
    tree = check_script(flow.script, flow.name)
    notes = [
        f"the script never reads the parameter {name!r}"
        for name in unused_parameters(tree, flow.parameters)
    ]
    if flow.policy is None:
        notes += [
            f"the targets of the script's {kind} steps are computed, so the policy does not limit them"
            for kind in computed_targets(tree)
        ]
    return notes


def _notes_on_web(flow: WebFlow) -> list[str]:
    if flow.script:
        tree = check_script(flow.script, flow.name, WEB_RULES)
        return [
            f"the script never reads the parameter {name!r}"
            for name in unused_parameters(tree, flow.parameters)
        ]
    properties = flow.parameters.get("properties", {})
    used = placeholders(list(flow.steps))
    names = (
        [name for name in properties if name not in used] if isinstance(properties, Mapping) else []
    )
    return [f"no step has the parameter {name!r} (as ${{{name}}})" for name in names]


def variable_of(name: str) -> str:
    """Return the name of a parameter's environment variable, without the prefix ``PARAM_``."""
    return "".join(character if character.isalnum() else "_" for character in name.upper())


def _first_comment(text: str) -> str:
    for line in text.split("\n")[:5]:
        words = line.lstrip("#").strip()
        if line.startswith("#") and not line.startswith("#!") and words:
            return words[:200]
    return ""


def _constants(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for node in parse_module(text).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="script" | "arguments" | "kept" as name)], value=value
            ):
                try:
                    found[name] = ast.literal_eval(value)
                except ValueError:
                    continue
            case _:
                continue
    return found


def _form(text: str) -> str:
    return text.rpartition('form="')[2].partition('"')[0] or "text"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
