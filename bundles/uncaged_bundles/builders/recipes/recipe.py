"""Reader for recipes: JSON of four forms becomes a flow; an error has the dotted path.

A script flow has ``actionName``, and ``script`` as a mapping; a task flow ``name``, and ``script``
as text; a web flow also a ``scope``; a block flow has ``steps``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from uncaged_bundles import hosts, shapes
from uncaged_bundles.contract import ON_FAILURE
from uncaged_bundles.errors import BundleError
from uncaged_bundles.examples import check_examples
from uncaged_bundles.shapes import Path, ShapeError
from uncaged_bundles.syntax import parse_module

from ..blocks.block_flow import is_block_flow, parse_block_flow
from ..inference.inference import infer_arguments
from .flows import WEB_SECONDS, ForeignFlow, RecipeFlow, ScriptFlow, TaskFlow, WebFlow
from .grammar_check import check_pattern
from .parameters import write_schema
from .recipe_sandbox import read_sandbox
from .web_recipe import policy_of, read_steps

MAX_RECIPE_BYTES = 1 << 20
MAX_SCRIPT_BYTES = 100 << 10
LANGUAGES = ("bash", "python", "powershell")
FORMATS = ("text", "json", "objects", "table")

_SCRIPT_KEYS = frozenset(
    {
        "version",
        "actionName",
        "description",
        "displayName",
        "parameters",
        "script",
        "grammarPatterns",
        "sandbox",
        "policy",
        "source",
        "examples",
        "onFailure",
    }
)
_TASK_KEYS = frozenset(
    {
        "version",
        "name",
        "description",
        "displayName",
        "parameters",
        "script",
        "grammarPatterns",
        "source",
        "examples",
        "policy",
        "language",
        "onFailure",
    }
)
_WEB_KEYS = (_TASK_KEYS - {"policy"}) | {"scope", "kind", "steps", "secrets", "maxSeconds"}
_BODY_KEYS = frozenset({"language", "body", "expectedOutputFormat", "arguments", "repeat"})
_TYPESCRIPT = re.compile(r"\basync\s+function\b|=>|\bfunction\s+\w+\s*\(|\bconst\s|\blet\s")


def read_recipe(data: bytes, where: str) -> RecipeFlow:
    """Return the flow that a recipe's bytes describe.

    Raises:
        BundleError: the recipe is not valid; the message has *where* and the dotted path.
    """
    try:
        return parse_recipe(load_json(data))
    except BundleError as exc:
        raise BundleError(f"{where}: {exc}") from exc


def load_json(data: bytes) -> object:
    """Return the value of strict JSON: no key twice, no NaN, at most 1 MiB."""
    if len(data) > MAX_RECIPE_BYTES:
        raise BundleError(f"has {len(data):,} bytes; a recipe has at most {MAX_RECIPE_BYTES:,}")
    try:
        found: object = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as exc:
        raise BundleError(f"byte {exc.start} is not UTF-8; save the file as UTF-8") from exc
    except json.JSONDecodeError as exc:
        raise BundleError(f"line {exc.lineno}, column {exc.colno}: not JSON: {exc.msg}") from exc
    except RecursionError as exc:
        raise BundleError("is nested too deeply to be read") from exc
    shapes.json_data(found, ("recipe",))
    return found


def parse_recipe(raw: object) -> RecipeFlow:
    """Return the flow that a recipe describes; ShapeError has the dotted path."""
    top: Path = ("recipe",)
    fields = shapes.mapping(raw, top)
    is_web = "scope" in fields or fields.get("kind") == "web"
    if is_block_flow(fields) and not is_web:
        return parse_block_flow(
            fields, safe_name(shapes.text(shapes.required(fields, "name", top), (*top, "name")))
        )
    version = fields.get("version", 1)
    if "actionName" not in fields and "name" not in fields:
        raise ShapeError(
            top, "is no recipe: a script flow has 'actionName', a task or web flow has 'name'"
        )
    if is_web:
        shapes.known_keys(fields, _WEB_KEYS, top)
        return _web(fields, top)
    if version != 1:
        raise ShapeError(
            (*top, "version"), f"{shapes.shown(version)} is not known here; the only version is 1"
        )
    if "actionName" in fields:
        shapes.known_keys(fields, _SCRIPT_KEYS, top)
        return _script(fields, top)
    shapes.known_keys(fields, _TASK_KEYS, top)
    return _task(fields, top)


def safe_name(text: str) -> str:
    """Return a recipe's own name as a flow name: ``listFiles`` is ``list-files``.

    Raises:
        BundleError: it has no letter.
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", text)
    name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60].strip("-")
    name = re.sub(r"^[^a-z]+", "", name)
    if not name:
        raise BundleError(
            f"{shapes.shown(text)} gives no flow name; name the flow with letters a to z"
        )
    return name


def _script(fields: Mapping[str, object], top: Path) -> ScriptFlow:
    script_path = (*top, "script")
    script = shapes.mapping(shapes.required(fields, "script", top), script_path)
    shapes.known_keys(script, _BODY_KEYS, script_path)
    language = shapes.one_of(*LANGUAGES)(
        script.get("language", "powershell"), (*script_path, "language")
    )
    body = script_text(shapes.required(script, "body", script_path), (*script_path, "body"))
    parameters = write_schema(fields.get("parameters", []), (*top, "parameters"))
    patterns, aliases, examples = _patterns(fields, parameters, top)
    policy, notes = _script_limits(fields, language, body, parameters, top)
    arguments = script.get("arguments")
    return ScriptFlow(
        **_identity(fields, "actionName", top),
        parameters=parameters,
        patterns=patterns,
        aliases=aliases,
        examples=examples,
        notes=notes,
        language=language,
        body=body,
        form=shapes.one_of(*FORMATS)(
            script.get("expectedOutputFormat", "text"), (*script_path, "expectedOutputFormat")
        ),
        arguments=infer_arguments(language, body, parameters)
        if arguments is None
        else _arguments(arguments, parameters, (*script_path, "arguments")),
        repeat=shapes.truth(script.get("repeat", False), (*script_path, "repeat")),
        policy=policy,
    )


def _script_limits(
    fields: Mapping[str, object],
    language: str,
    body: str,
    parameters: Mapping[str, object],
    top: Path,
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the limits of the script effect: those of `policy`, as they are, or of `sandbox`."""
    if "policy" not in fields:
        return read_sandbox(fields.get("sandbox"), language, body, parameters, (*top, "sandbox"))
    if "sandbox" in fields:
        raise ShapeError((*top, "policy"), "says the same as 'sandbox'; leave one of them out")
    policy = shapes.mapping(fields["policy"], (*top, "policy"))
    shapes.known_keys(policy, ("script",), (*top, "policy"))
    return dict(shapes.mapping(policy.get("script", {}), (*top, "policy", "script"))), ()


def _task(fields: Mapping[str, object], top: Path) -> TaskFlow | ForeignFlow:
    text = script_text(shapes.required(fields, "script", top), (*top, "script"))
    parameters = write_schema(fields.get("parameters", []), (*top, "parameters"))
    patterns, aliases, examples = _patterns(fields, parameters, top)
    shared: dict[str, Any] = {
        **_identity(fields, "name", top),
        "parameters": parameters,
        "patterns": patterns,
        "aliases": aliases,
        "examples": examples,
    }
    language = fields.get("language") or language_of(text)
    if language == "python":
        raw = fields.get("policy")
        policy = None if raw is None else shapes.mapping(raw, (*top, "policy"))
        hosts.check_policy(policy or {}, (*top, "policy"))
        return TaskFlow(**shared, script=text, policy=policy)
    known = shapes.one_of("typescript", "javascript")(language, (*top, "language"))
    return ForeignFlow(**shared, kind="task", language=known, text=text)


def _web(fields: Mapping[str, object], top: Path) -> WebFlow | ForeignFlow:
    parameters = write_schema(fields.get("parameters", []), (*top, "parameters"))
    patterns, aliases, examples = _patterns(fields, parameters, top)
    shared: dict[str, Any] = {
        **_identity(fields, "name", top),
        "parameters": parameters,
        "patterns": patterns,
        "aliases": aliases,
        "examples": examples,
    }
    scope = shapes.mapping(fields.get("scope", {"type": "global"}), (*top, "scope"))
    if ("script" in fields) is ("steps" in fields):
        raise ShapeError(top, "needs either 'steps' or a 'script'")
    text = script_text(fields["script"], (*top, "script")) if "script" in fields else ""
    language = fields.get("language") or (language_of(text, "javascript") if text else "python")
    if language != "python":
        known = shapes.one_of("typescript", "javascript")(language, (*top, "language"))
        return ForeignFlow(**shared, kind="web", language=known, text=text, scope=scope)
    return WebFlow(
        **shared,
        script=text,
        steps=() if text else read_steps(fields["steps"], parameters, (*top, "steps")),
        scope=scope,
        policy=policy_of(scope, fields.get("secrets", {}), top),
        max_seconds=shapes.positive(fields.get("maxSeconds", WEB_SECONDS), (*top, "maxSeconds")),
    )


def _identity(fields: Mapping[str, object], key: str, top: Path) -> dict[str, Any]:
    name = shapes.text(shapes.required(fields, key, top), (*top, key))
    if "\0" in name or not name.strip():
        raise ShapeError((*top, key), f"{shapes.shown(name)} is no name")
    return {
        "name": safe_name(name),
        "description": shapes.text(
            shapes.required(fields, "description", top), (*top, "description")
        ),
        "display_name": shapes.text(fields.get("displayName", name), (*top, "displayName")),
        "source": _source(fields.get("source"), (*top, "source")),
        "on_failure": shapes.one_of("", *ON_FAILURE)(
            fields.get("onFailure", ""), (*top, "onFailure")
        ),
    }


def _source(raw: object, path: Path) -> str:
    """Return the origin of a recipe in one line."""
    if raw is None:
        return ""
    if isinstance(raw, str):
        return raw
    fields = shapes.mapping(raw, path)
    return ", ".join(
        f"{key} {shapes.text(fields[key], (*path, key))}".removeprefix("type ")
        for key in sorted(fields, key="type".__ne__)
    )


def _patterns(
    fields: Mapping[str, object], parameters: Mapping[str, object], top: Path
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[object, ...]]:
    """Return the patterns, those of them that are aliases, and all examples."""
    known = list(shapes.mapping(parameters.get("properties", {}), top))
    patterns, aliases, examples = [], [], []
    listed = fields.get("grammarPatterns", [])
    if not isinstance(listed, list):
        raise ShapeError((*top, "grammarPatterns"), f"must be a list, not {shapes.shown(listed)}")
    for index, item in enumerate(listed):
        path = (*top, "grammarPatterns", index)
        entry = {"pattern": item} if isinstance(item, str) else shapes.mapping(item, path)
        shapes.known_keys(entry, ("pattern", "isAlias", "examples"), path)
        pattern = shapes.text(shapes.required(entry, "pattern", path), (*path, "pattern"))
        check_pattern(pattern, known, (*path, "pattern"))
        patterns.append(pattern)
        if shapes.truth(entry.get("isAlias", False), (*path, "isAlias")):
            aliases.append(pattern)
        examples += [
            {"sentence": text}
            for text in shapes.texts(entry.get("examples", []), (*path, "examples"))
        ]
    return (
        tuple(patterns),
        tuple(aliases),
        (*examples, *check_examples(fields.get("examples", []), (*top, "examples"))),
    )


def _arguments(raw: object, parameters: Mapping[str, object], path: Path) -> tuple[object, ...]:
    if not isinstance(raw, list):
        raise ShapeError(path, f"must be a list, not {shapes.shown(raw)}")
    known = shapes.mapping(parameters.get("properties", {}), path)
    for index, part in enumerate(raw):
        if isinstance(part, str):
            continue
        here = (*path, index)
        entry = shapes.mapping(part, here)
        shapes.known_keys(entry, ("param", "flag", "switch"), here)
        shapes.one_of(*known)(shapes.required(entry, "param", here), (*here, "param"))
        shapes.text(entry.get("flag", ""), (*here, "flag"))
        if shapes.truth(entry.get("switch", False), (*here, "switch")) and not entry.get("flag"):
            raise ShapeError(here, "a switch needs its flag")
    return tuple(raw)


def script_text(value: object, path: Path) -> str:
    """Return a script's text, if it is not empty, not too large and without NUL."""
    text = shapes.text(value, path)
    if not text.strip():
        raise ShapeError(path, "is empty")
    if (size := len(text.encode())) > MAX_SCRIPT_BYTES:
        raise ShapeError(path, f"has {size:,} bytes; a script has at most {MAX_SCRIPT_BYTES:,}")
    if "\0" in text:
        raise ShapeError(
            path,
            f"line {text[: text.index(chr(0))].count(chr(10)) + 1}: a NUL character is no text",
        )
    return text.replace("\r\n", "\n")


def language_of(text: str, other: str = "typescript") -> str:
    """Return a script's language by its text: ``python``, or the *other* that its flows may be
    in.
    """
    try:
        parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return other if _TYPESCRIPT.search(text) else "python"
    return "python"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise BundleError(f"the key {shapes.shown(key)} occurs twice in one mapping")
        found[key] = value
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise BundleError(f"{text} is no JSON number")
