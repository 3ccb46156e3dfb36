"""Examples of a flow: a sentence, perhaps parameters, and what the result must be.

``expect`` holds one or more of ``equals``, ``contains``, ``matches`` (a regular expression) and
``schema`` (JSON Schema), compared with the result's message, or with the value at the dotted path
``at`` (``data.output.0.name``). ``success: false`` expects a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from . import shapes
from .shapes import Path, ShapeError
from .validation.schemas import check_schema

CHECKS = ("equals", "contains", "matches", "schema")
MESSAGE = "message"
SHOWN_CHARACTERS = 400
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example. params: None if it has none. expect: the mapping as written; empty means that
    the content is not checked.
    """

    sentence: str
    params: Mapping[str, object] | None = None
    success: bool = True
    expect: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: object, path: Path) -> Example:
        """Check one entry of a descriptor's or a recipe's ``examples``; a text is a sentence
        without parameters.
        """
        if isinstance(raw, str):
            return cls(sentence=raw)
        fields = shapes.mapping(raw, path)
        shapes.known_keys(fields, ("sentence", "params", "success", "expect"), path)
        params = fields.get("params")
        expect = shapes.mapping(fields.get("expect", {}), (*path, "expect"))
        _check_expectation(expect, (*path, "expect"))
        return cls(
            sentence=shapes.text(shapes.required(fields, "sentence", path), (*path, "sentence")),
            params=None if params is None else shapes.mapping(params, (*path, "params")),
            success=shapes.truth(fields.get("success", True), (*path, "success")),
            expect=expect,
        )

    def difference(self, result: Mapping[str, object]) -> str | None:
        """Return how *result* differs from the expectation; None if every check passes.

        Args:
            result: ``{"success", "message", "data"}``, as a flow returns it.
        """
        if result.get("success") is not self.success:
            expected, actual = ("succeed", "failed") if self.success else ("fail", "succeeded")
            return f"it should {expected} and {actual}: {_shown(result.get(MESSAGE))}"
        place = str(self.expect.get("at", MESSAGE))
        value = _value_at(result, place) if self.expect else None
        if value is _MISSING:
            return f"the result has nothing at {place}"
        checks = ((name, self.expect[name]) for name in CHECKS if name in self.expect)
        return next(
            (
                f"{place} {problem}"
                for name, expected in checks
                if (problem := _problem(name, expected, value)) is not None
            ),
            None,
        )


def check_examples(raw: object, path: Path) -> tuple[object, ...]:
    """Return a recipe's examples in the form of a descriptor.

    Raises:
        ShapeError: an example is not valid; with its path.
    """
    if not isinstance(raw, list):
        raise ShapeError(path, f"must be a list, not {shapes.shown(raw)}")
    for index, item in enumerate(raw):
        Example.read(item, (*path, index))
    return tuple({"sentence": item} if isinstance(item, str) else item for item in raw)


def _check_expectation(expect: Mapping[str, object], path: Path) -> None:
    if not expect:
        return
    shapes.known_keys(expect, (*CHECKS, "at"), path)
    if not any(name in expect for name in CHECKS):
        raise ShapeError(path, f"says nothing to compare with; name one of {', '.join(CHECKS)}")
    shapes.text(expect.get("at", MESSAGE), (*path, "at"))
    shapes.text(expect.get("contains", ""), (*path, "contains"))
    pattern = shapes.text(expect.get("matches", ""), (*path, "matches"))
    try:
        re.compile(pattern)
    except re.error as exc:
        raise ShapeError(
            (*path, "matches"), f"{shapes.shown(pattern)} is no regular expression: {exc}"
        ) from exc
    if "schema" in expect:
        check_schema(shapes.mapping(expect["schema"], (*path, "schema")), (*path, "schema"))


def _problem(name: str, expected: object, value: object) -> str | None:
    match name:
        case "equals":
            same = json.dumps(value, sort_keys=True) == json.dumps(expected, sort_keys=True)
            return None if same else f"is {_shown(value)}, and should be {_shown(expected)}"
        case "contains":
            return (
                None
                if str(expected) in _as_text(value)
                else f"is {_shown(value)}, and should contain {_shown(expected)}"
            )
        case "matches":
            found = re.search(str(expected), _as_text(value), re.MULTILINE)
            return None if found else f"is {_shown(value)}, and should match {_shown(expected)}"
        case _:
            from jsonschema.validators import validator_for

            schema: Any = expected
            error = next(validator_for(schema)(schema).iter_errors(cast(Any, value)), None)
            return (
                None
                if error is None
                else f"does not fit its schema: {error.json_path}: {error.message[:SHOWN_CHARACTERS]}"
            )


def _value_at(result: Mapping[str, object], place: str) -> object:
    value: object = result
    for part in place.split("."):
        match value:
            case Mapping() if part in value:
                value = value[part]
            case list() if part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            case _:
                return _MISSING
    return value


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
