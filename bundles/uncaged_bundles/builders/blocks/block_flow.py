"""Reader for the JSON of block flows. Unknown keys are reported in notes; an error has its path.

AnythingLLM's agent flows are accepted unchanged. Beyond them a flow may have a `policy`, typed
variables with a `category`, and the blocks `condition`, `forEach`, `code` and `flow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uncaged_bundles import hosts, shapes
from uncaged_bundles.contract import FOR_PEOPLE
from uncaged_bundles.examples import check_examples
from uncaged_bundles.shapes import Path, ShapeError
from uncaged_bundles.values import convert, is_a

from ..recipes.flows import RecipeFlow
from ..recipes.grammar_check import check_pattern
from .expression import compile_expression
from .mask import find_masks
from .nesting import INNER
from .warnings import find_warnings

BLOCKS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "start": (frozenset(), frozenset({"variables"})),
    "apiCall": (
        frozenset({"url"}),
        frozenset(
            {
                "method",
                "headers",
                "bodyType",
                "body",
                "formData",
                "responseVariable",
                "retry",
                "timeout_s",
            }
        ),
    ),
    "llmInstruction": (
        frozenset({"instruction"}),
        frozenset({"model", "tools", "resultVariable", "retry", "timeout_s"}),
    ),
    "webScraping": (
        frozenset({"url"}),
        frozenset(
            {
                "captureAs",
                "querySelector",
                "enableSummarization",
                "resultVariable",
                "retry",
                "timeout_s",
            }
        ),
    ),
    "condition": (frozenset({"expression", "then"}), frozenset({"else", "resultVariable"})),
    "forEach": (
        frozenset({"list", "steps"}),
        frozenset({"itemVariable", "indexVariable", "limit", "resultVariable"}),
    ),
    "code": (frozenset({"expression"}), frozenset({"resultVariable"})),
    "flow": (frozenset({"flow"}), frozenset({"prompt", "params", "resultVariable"})),
}
"""Required and optional keys, by the type of block."""
COMMON_KEYS = frozenset({"directOutput", "description", "name"})
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
BODY_TYPES = ("json", "form", "text")
CAPTURES = ("text", "html", "querySelector")
TYPES = ("string", "number", "integer", "boolean", "array", "object")
CATEGORIES = ("required", "optional", "hidden", "configuration")
MAX_BLOCKS = 1000
MAX_ITEMS = 1000
MAX_NESTING = 8

_TOP_KEYS = frozenset(
    {
        "name",
        "description",
        "active",
        "steps",
        "policy",
        "examples",
        "source",
        "displayName",
        "uuid",
        "grammarPatterns",
    }
)
_VARIABLE_KEYS = frozenset(
    {"name", "value", "description", "type", "category", "required", "hidden"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFlow(RecipeFlow):
    """Blocks that run in order.

    variables: initial values. expressions: the compiled expressions, by their text. active: False
    means that the flow is disabled when it is added. policy: limits that override those inferred
    from the blocks.
    """

    steps: list[Any]
    variables: Mapping[str, object]
    expressions: Mapping[str, object] = field(default_factory=dict)
    active: bool = True
    policy: Mapping[str, object] = field(default_factory=dict)


def is_block_flow(raw: object) -> bool:
    """Tell whether JSON data is a block flow: it has steps, perhaps wrapped in AnythingLLM's
    ``config``.
    """
    return isinstance(raw, dict) and (
        "steps" in raw or (isinstance(raw.get("config"), dict) and "steps" in raw["config"])
    )


def parse_block_flow(raw: Mapping[str, object], name: str) -> BlockFlow:
    """Return the flow that the JSON describes.

    Args:
        name: the name of the flow.
    Raises:
        ShapeError: the flow is not valid; with the dotted path, and the number of the block.
    """
    top: Path = ("flow",)
    inner = raw.get("config")
    fields = {**raw, **inner} if isinstance(inner, dict) and "steps" in inner else dict(raw)
    reader = BlockReader()
    display_name = shapes.text(fields.get("name", name), (*top, "name"))
    notes = [
        f"the key {key!r} of the flow is not known and does nothing"
        for key in fields
        if key not in _TOP_KEYS | {"config"}
    ]
    steps = reader.steps(shapes.required(fields, "steps", top), (*top, "steps"), "")
    variables, parameters = read_variables(steps, (*top, "steps", 0, "config", "variables"))
    masks = find_masks(steps)
    notes += reader.notes
    notes += [
        f"{place} was left out when the flow was exported: fill it in, and add the file again"
        for place in masks
    ]
    notes += find_warnings(steps, declared_variables(steps))
    policy = shapes.mapping(fields.get("policy", {}), (*top, "policy"))
    hosts.check_policy(policy, (*top, "policy"))
    examples = check_examples(fields.get("examples", []), (*top, "examples"))
    patterns = shapes.texts(fields.get("grammarPatterns", []), (*top, "grammarPatterns"))
    for index, pattern in enumerate(patterns):
        check_pattern(
            pattern,
            list(shapes.mapping(parameters["properties"], top)),
            (*top, "grammarPatterns", index),
        )
    return BlockFlow(
        name=name,
        description=shapes.text(fields.get("description") or display_name, (*top, "description")),
        display_name=display_name,
        source=shapes.text(fields.get("source", ""), (*top, "source")),
        parameters=parameters,
        patterns=tuple(patterns),
        examples=examples,
        notes=tuple(notes),
        steps=steps,
        variables=variables,
        expressions=reader.expressions,
        active=shapes.truth(fields.get("active", True), (*top, "active")) and not masks,
        policy=policy,
    )


class BlockReader:
    """Reads blocks, nested ones included.

    expressions: all compiled expressions, by their text. notes: unknown keys.
    """

    def __init__(self) -> None:
        self.expressions: dict[str, object] = {}
        self.notes: list[str] = []
        self._count = 0

    def steps(self, raw: object, path: Path, before: str, depth: int = 0) -> list[Any]:
        if not isinstance(raw, list):
            raise ShapeError(path, f"must be a list of blocks, not {shapes.shown(raw)}")
        if not before and not raw:
            raise ShapeError(path, "is empty; a flow has at least one block")
        self._count += len(raw)
        if self._count > MAX_BLOCKS:
            raise ShapeError(path, f"a flow has at most {MAX_BLOCKS:,} blocks")
        if depth > MAX_NESTING:
            raise ShapeError(path, f"blocks are nested at most {MAX_NESTING} levels deep")
        return [
            self._block(item, (*path, index), f"{before}{index + 1}", depth)
            for index, item in enumerate(raw)
        ]

    def _block(self, raw: object, path: Path, number: str, depth: int) -> dict[str, object]:
        fields = shapes.mapping(raw, path)
        kind = fields.get("type")
        if not isinstance(kind, str) or kind not in BLOCKS:
            what = "is missing" if kind is None else f"{shapes.shown(kind)} is no type of block"
            raise ShapeError(
                (*path, "type"), f"{what} (block {number}); known: {', '.join(BLOCKS)}"
            )
        if "config" not in fields:
            raise ShapeError((*path, "config"), f"is missing; block {number} ({kind}) needs one")
        here = (*path, "config")
        config = shapes.mapping(fields["config"], here)
        needed, possible = BLOCKS[kind]
        for key in sorted(needed - set(config)):
            raise ShapeError((*here, key), f"is missing; block {number} ({kind}) needs it")
        unknown = [key for key in config if key not in needed | possible | COMMON_KEYS]
        self.notes += [
            f"block {number} ({kind}): {key!r} is not known and does nothing" for key in unknown
        ]
        if kind == "start" and number != "1":
            raise ShapeError(
                path, f"block {number} is a start block; there is one, and it is the first"
            )
        self._check(kind, config, here)
        checked = dict(config)
        for key in INNER.get(kind, ()):
            if key in config:
                checked[key] = self.steps(config[key], (*here, key), f"{number}.", depth + 1)
        return {"type": kind, "config": checked}

    def _check(self, kind: str, config: Mapping[str, object], path: Path) -> None:
        """Check the values of one block."""
        for key in (
            "responseVariable",
            "resultVariable",
            "itemVariable",
            "indexVariable",
            "url",
            "prompt",
            "flow",
            "model",
        ):
            if config.get(key) is not None:
                shapes.text(config[key], (*path, key))
        shapes.truth(config.get("directOutput") or False, (*path, "directOutput"))
        if "timeout_s" in config:
            shapes.positive(config["timeout_s"], (*path, "timeout_s"))
        match kind:
            case "apiCall":
                self._check_call(config, path)
            case "webScraping":
                capture = shapes.one_of(*CAPTURES)(
                    config.get("captureAs") or "text", (*path, "captureAs")
                )
                if capture == "querySelector" and not config.get("querySelector"):
                    raise ShapeError((*path, "querySelector"), "is missing; captureAs asks for it")
                shapes.text(config.get("querySelector") or "", (*path, "querySelector"))
            case "llmInstruction":
                self._check_tools(config, path)
            case "forEach":
                self._check_loop(config, path)
            case "flow":
                shapes.mapping(config.get("params") or {}, (*path, "params"))
            case "condition" | "code":
                text = shapes.text(config["expression"], (*path, "expression"))
                self.expressions[text] = compile_expression(text, (*path, "expression"))
            case _:
                pass
        address = config.get("url")
        if (
            isinstance(address, str)
            and address.strip()
            and (flaw := hosts.flaw_in_address(address))
        ):
            raise ShapeError((*path, "url"), flaw)

    def _check_loop(self, config: Mapping[str, object], path: Path) -> None:
        if not isinstance(config["list"], str | list):
            raise ShapeError(
                (*path, "list"),
                f"must be a list or a text such as ${{items}}, not {shapes.shown(config['list'])}",
            )
        limit = shapes.whole(config.get("limit", 1), (*path, "limit"))
        if not 1 <= limit <= MAX_ITEMS:
            raise ShapeError((*path, "limit"), f"must be from 1 to {MAX_ITEMS:,}, not {limit}")

    def _check_tools(self, config: Mapping[str, object], path: Path) -> None:
        listed = config.get("tools") or []
        if not isinstance(listed, list):
            raise ShapeError(
                (*path, "tools"),
                f'must be a list of {{"flow", "description"}}, not {shapes.shown(listed)}',
            )
        for index, item in enumerate(listed):
            entry = shapes.mapping(item, (*path, "tools", index))
            shapes.known_keys(entry, ("flow", "description"), (*path, "tools", index))
            shapes.text(
                shapes.required(entry, "flow", (*path, "tools", index)),
                (*path, "tools", index, "flow"),
            )
            shapes.text(entry.get("description", ""), (*path, "tools", index, "description"))

    def _check_call(self, config: Mapping[str, object], path: Path) -> None:
        method = shapes.text(config.get("method", "GET"), (*path, "method"))
        if method.upper() not in METHODS:
            raise ShapeError(
                (*path, "method"), f"{shapes.shown(method)} is not one of {', '.join(METHODS)}"
            )
        shapes.one_of(*BODY_TYPES)(config.get("bodyType") or "json", (*path, "bodyType"))
        for key in ("headers", "formData"):
            listed = config.get(key) or []
            if not isinstance(listed, list):
                raise ShapeError(
                    (*path, key),
                    f'must be a list of {{"key", "value"}}, not {shapes.shown(listed)}',
                )
            for index, item in enumerate(listed):
                entry = shapes.mapping(item, (*path, key, index))
                shapes.text(entry.get("key", ""), (*path, key, index, "key"))


def read_variables(steps: list[Any], path: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Return the variables' initial values, and the JSON Schema of those that a run may set."""
    listed = steps[0]["config"].get("variables") if steps[0]["type"] == "start" else None
    values: dict[str, object] = {}
    properties: dict[str, object] = {}
    required: list[str] = []
    if listed is not None and not isinstance(listed, list):
        raise ShapeError(path, f"must be a list of variables, not {shapes.shown(listed)}")
    for index, item in enumerate(listed or []):
        here = (*path, index)
        fields = shapes.mapping(item, here)
        shapes.known_keys(fields, _VARIABLE_KEYS, here)
        name = shapes.text(fields.get("name") or "", (*here, "name"))
        if not name.strip():
            continue  # AnythingLLM's editor leaves such rows behind
        if name in values:
            raise ShapeError((*here, "name"), f"the variable {name!r} occurs twice; rename one")
        if "\0" in name or name != name.strip():
            raise ShapeError((*here, "name"), f"{shapes.shown(name)} is no name for a variable")
        kind, category = _kind_of(fields, here)
        values[name] = _value(fields.get("value"), kind, (*here, "value"))
        if category == "hidden":
            continue
        if category == "required":
            required.append(name)
            del values[name]
        described = shapes.text(fields.get("description") or "", (*here, "description"))
        schema: dict[str, object] = {
            "type": kind,
            "description": described or f"Value for variable {name}",
        }
        if values.get(name) not in (None, ""):
            schema["default"] = values[name]
        properties[name] = {**schema, FOR_PEOPLE: True} if category == "configuration" else schema
    parameters: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return values, {**parameters, "required": required} if required else parameters


def declared_variables(steps: list[Any]) -> set[str]:
    """Return the names that a start block declares."""
    listed = steps[0]["config"].get("variables") if steps[0]["type"] == "start" else None
    return {str(row.get("name")) for row in listed or [] if isinstance(row, dict)}


def _kind_of(fields: Mapping[str, object], path: Path) -> tuple[str, str]:
    kind = shapes.one_of(*TYPES)(fields.get("type", "string"), (*path, "type"))
    category = shapes.one_of(*CATEGORIES)(fields.get("category", "optional"), (*path, "category"))
    for word in ("required", "hidden"):
        if shapes.truth(fields.get(word, False), (*path, word)):
            category = word
    return kind, category


def _value(raw: object, kind: str, path: Path) -> object:
    """Return a variable's value in its type; without a value, an empty text, or None for other
    types.
    """
    if raw is None or raw == "":
        return "" if kind == "string" else None
    if kind == "string":
        return raw
    value = convert(raw, kind)
    if not is_a(value, kind):
        raise ShapeError(path, f"{shapes.shown(raw)} is no {kind}")
    return value
