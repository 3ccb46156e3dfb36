"""A model is asked for data until what it says fits a schema, at most three times in all, in one conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .conversation import user_turn
from .loop import ToolLoop
from .prompts.extract import Unfit, checker, extract
from .prompts.fields import describe_fields

MAX_REPAIRS = 2
RULE = (
    "Answer with exactly one fenced block, tagged json, that holds one JSON object, or with that object alone. Its fields are:\n\n{fields}"
)
WRONG = "Your answer could not be used:\n\n{problem}\n\nAnswer once more, with the JSON object put right."


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What data has to look like. schema: of an object. wrapped: the wanted value is its field ``value``."""

    schema: Mapping[str, Any]
    wrapped: bool

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Form:
        """Models answer with objects; anything else is put into one."""
        if schema.get("type") == "object" or "properties" in schema:
            return cls(schema=schema, wrapped=False)
        inner = {"$id": "urn:uncaged:value", **schema} if "$defs" in schema else dict(schema)  # its own references stay its own
        whole = {"type": "object", "properties": {"value": inner}, "required": ["value"], "additionalProperties": False}
        return cls(schema=whole, wrapped=True)

    @property
    def rule(self) -> str:
        return RULE.format(fields=describe_fields(self.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAnswer:
    """value: None when no answer could be used. problems: of each unusable answer, in order."""

    value: object
    fits: bool
    problems: tuple[str, ...]


def ask_for_data(loop: ToolLoop, form: Form, record: Callable[[Mapping[str, object]], None]) -> DataAnswer:
    """Let the talk answer until the data fits.

    Args:
        record: writes an unusable answer to the journal.
    """
    check = checker(form.schema)
    problems: list[str] = []
    while True:
        text = loop.answer()
        found = extract(text, check)
        if not isinstance(found, Unfit):
            value = found.meta["value"] if form.wrapped else dict(found.meta)
            return DataAnswer(value=value, fits=True, problems=tuple(problems))
        problems.append(found.problem)
        record({"answer": text, "problem": found.problem, "usage": loop.meter.document()})
        if len(problems) > MAX_REPAIRS:
            return DataAnswer(value=None, fits=False, problems=tuple(problems))
        loop.conversation.turns.append(user_turn(WRONG.format(problem=found.problem)))
