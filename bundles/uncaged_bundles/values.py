"""Conversion of text to typed values, the same for recipes, command lines and calls of flows."""

from __future__ import annotations

import json
import math
import re

TRUE_WORDS, FALSE_WORDS = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def convert(value: object, kind: str) -> object:
    """Return *value* as *kind* if its text has that type, else unchanged."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    match kind:
        case "boolean" if word in TRUE_WORDS or word in FALSE_WORDS:
            return word in TRUE_WORDS
        case "number" | "integer" | "array" | "object":
            try:
                found: object = json.loads(value)
            except (ValueError, RecursionError):
                return value
            return found if is_a(found, kind) else value
        case _:
            return value


def is_a(value: object, kind: str) -> bool:
    """Tell whether *value* is of the JSON type *kind* (or a path)."""
    match kind:
        case "string" | "path":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
        case "number":
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and math.isfinite(value)
            )
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
        case _:
            return True


def matches(pattern: str, text: str) -> bool:
    """Tell whether a regular expression is found in *text*; ``$`` is its true end, as in JSON
    Schema, not before a last line feed.

    Raises:
        re.error: *pattern* is no regular expression.
    """
    return re.search(_END.sub(_anchored, pattern), text) is not None


_END = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""An escaped character, a set of characters, or the end."""


def _anchored(found: re.Match[str]) -> str:
    return r"\Z" if found[0] == "$" else found[0]
