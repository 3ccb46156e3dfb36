"""Request for structured data: a model answers until the data fits a schema, at most three times in
one conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from uncaged_bundles import shapes

from .conversation import user_turn
from .loop import ToolLoop
from .prompts.extract import Unfit, checker, extract
from .prompts.fields import describe_fields

MAX_REPAIRS = 2
RULE = (
    "Answer with exactly one fenced block, tagged json, that holds one JSON object, or "
    "with that object alone. Its fields are:\n\n{fields}"
)
WRONG = "Your answer could not be used:\n\n{problem}\n\nAnswer once more, with the JSON object put right."


def read_schema(value: object, path: shapes.Path) -> Mapping[str, Any]:
    """Read the JSON Schema of a request.

    Raises:
        ShapeError: it is none.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    schema = shapes.mapping(value, path)
    try:
        validator_for(dict(schema), default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as exc:
        raise shapes.ShapeError(path, f"is no JSON Schema: {exc.message[:200]}") from None
    return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSchema:
    """Schema of requested data. schema: of an object. wrapped: the requested value is its field
    ``value``.
    """

    schema: Mapping[str, Any]
    wrapped: bool

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> DataSchema:
        """Return the schema of a request. One that is not of an object is wrapped, since models
        answer with objects.
        """
        if schema.get("type") == "object" or "properties" in schema:
            return cls(schema=schema, wrapped=False)
        # its references resolve within it
        inner = {"$id": "urn:uncaged:value", **schema} if "$defs" in schema else dict(schema)
        whole = {
            "type": "object",
            "properties": {"value": inner},
            "required": ["value"],
            "additionalProperties": False,
        }
        return cls(schema=whole, wrapped=True)

    @property
    def rule(self) -> str:
        return RULE.format(fields=describe_fields(self.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAnswer:
    """Data from a model. value: None without a usable answer. problems: of each unusable answer, in
    order.
    """

    value: object
    fits: bool
    problems: tuple[str, ...]


def ask_for_data(
    loop: ToolLoop, data_schema: DataSchema, record: Callable[[Mapping[str, object]], None]
) -> DataAnswer:
    """Run the loop until the data fits.

    Args:
        record: writes an unusable answer to the journal.
    """
    check = checker(data_schema.schema)
    problems: list[str] = []
    while True:
        text = loop.answer()
        found = extract(text, check)
        if not isinstance(found, Unfit):
            value = found.meta["value"] if data_schema.wrapped else dict(found.meta)
            return DataAnswer(value=value, fits=True, problems=tuple(problems))
        problems.append(found.problem)
        record({"answer": text, "problem": found.problem, "usage": loop.meter.document()})
        if len(problems) > MAX_REPAIRS:
            return DataAnswer(value=None, fits=False, problems=tuple(problems))
        loop.conversation.turns.append(user_turn(WRONG.format(problem=found.problem)))
