"""The extractor as a tool of a model in a role: it extracts data from a text, by a JSON Schema.

Offered if the config names an extractor. Its usage is added to the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.shapes import ShapeError
from uncaged_bundles.validation.schemas import check_schema
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.services.canonical import depth
from uncaged_engine.services.costs import Spent, priced
from uncaged_models.client import ToolDescription
from uncaged_models.conversation import ToolResult, ToolUse, clean
from uncaged_models.extractor import MAX_TEXT_CHARACTERS, extract_data
from uncaged_models.prompts.extract import MAX_DEPTH, checker
from uncaged_models.prompts.history import cut

from .toolbox import MAX_RESULT_CHARACTERS

NAME = "extract"
MOST_CALLS = 20
MAX_SCHEMA_CHARACTERS = 20_000
REFUSED = frozenset({"pattern", "patternProperties", "format", "$ref", "$dynamicRef"})
"""Keywords with which a few characters of a schema can keep the engine busy for ever."""
NAMED = frozenset({"properties", "$defs", "dependentSchemas"})
VALUES = frozenset({"enum", "const", "default", "examples"})
TOOL = ToolDescription(
    name=NAME,
    description="Take data out of a text, such as a path or a number that the task names. Answers with data that fits the schema; "
    "what the text does not say is left out, never guessed.",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARACTERS},
            "schema": {
                "type": "object",
                "description": f"A JSON Schema without {', '.join(sorted(REFUSED))}.",
            },
            "prompt": {"type": "string", "description": "What to take out, in a sentence."},
        },
        "required": ["text", "schema"],
        "additionalProperties": False,
    },
)


class ExtractTool:
    """Extractor for one answer of an agent."""

    described = (TOOL,)

    def __init__(self, context: EffectContext) -> None:
        self._context = context
        self._calls = 0
        self._spent = Spent()

    def use(self, call: ToolUse, left_s: float) -> ToolResult:
        """Take the data out within *left_s*; what is wrong with the call or the text is in the
        result.

        Raises:
            EnvironmentLacks: the extractor cannot be asked.
        """
        self._calls += 1
        if self._calls > MOST_CALLS:
            return _failed(
                call,
                f"{NAME} can be used {MOST_CALLS} times in one answer, and that is used up; go on with what you have",
            )
        try:
            arguments = call.parsed()
        except ValueError as exc:
            return _failed(call, str(exc))
        problems = checker(TOOL.parameters)(arguments) or schema_problems(arguments["schema"])
        if problems:
            return _failed(call, f"the arguments of {NAME} are wrong: {'; '.join(problems)}")
        extraction = extract_data(
            arguments["text"],
            arguments["schema"],
            arguments.get("prompt") or "Take the data that is described below out of the text.",
            self._context,
            timeout_s=max(left_s, 0.001),
        )
        self._spent = self._spent.plus(priced(extraction.usage, self._context.config.prices))
        if not extraction.fits:
            return _failed(call, f"the text does not give such data: {extraction.problem}")
        return ToolResult(
            call=call.id,
            text=cut(clean(json.dumps(extraction.meta, ensure_ascii=False)), MAX_RESULT_CHARACTERS),
        )

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        return {"tool": call.name}

    def counted(self, usage: Mapping[str, object]) -> Mapping[str, object]:
        """Return a model's usage with what the extractor used up."""
        if not self._spent.document():
            return usage
        own = priced(usage, self._context.config.prices)
        return {**own, **Spent().plus(own).plus(self._spent.document()).document()}


def schema_problems(schema: Mapping[str, Any]) -> list[str]:
    """Return why a schema cannot be used; an empty list if it can."""
    if depth(schema) > MAX_DEPTH:
        return [f"schema: it is nested deeper than {MAX_DEPTH}"]
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        return [f"schema: it is longer than {MAX_SCHEMA_CHARACTERS} characters"]
    refused = sorted(REFUSED.intersection(_keywords(schema)))
    if refused:
        return [f"schema: {', '.join(refused)} cannot be used here"]
    try:
        check_schema(schema, ("schema",))
    except ShapeError as exc:
        return [str(exc)]
    return []


def _keywords(value: object) -> Iterator[str]:
    """Yield the keywords of a schema and of the schemas in it; a property may have any name, and
    listed values are no schemas.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            if key not in VALUES:
                yield from _keywords(
                    list(inner.values()) if key in NAMED and isinstance(inner, Mapping) else inner
                )
    elif isinstance(value, list):
        for inner in value:
            yield from _keywords(inner)


def _failed(call: ToolUse, text: str) -> ToolResult:
    return ToolResult(call=call.id, text=cut(clean(text), MAX_RESULT_CHARACTERS), failed=True)
