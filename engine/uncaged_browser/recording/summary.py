"""Steps of web tasks as one line for people."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["summary_of"]

MAX_CHARACTERS = 120
VALUES = ("url", "text", "key", "options", "files", "direction", "words", "factor", "for")


def summary_of(body: object) -> str:
    """Return an operation, as JSON data, in a few words: ``click button "Save"``."""
    if not isinstance(body, Mapping):
        return ""
    target = _element(body.get("target"))
    value = next((_text(body[key]) for key in VALUES if key in body), "")
    words = [str(body.get("do", "")), target]
    if body.get("do") == "drag":
        words += ["onto", _element(body.get("onto"))]
    elif value:
        words.append(f": {value}" if target else value)
    if body.get("checked") is False:
        words.append("off")
    if body.get("submit") is True:
        words.append("and press Enter")
    line = " ".join(word for word in words if word).replace(" : ", ": ")
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1]}…"


def _element(target: object) -> str:
    """Return the first of an element's alternatives."""
    first = target[0] if isinstance(target, list) and target else target
    if not isinstance(first, Mapping):
        return ""
    way = next((key for key in first if key not in ("name", "nth", "exact")), "")
    if way == "role":
        name = first.get("name")
        return str(first[way]) if name is None else f'{first[way]} "{name}"'
    return f'"{first.get(way)}"' if way in ("label", "text") else f"{way} {first.get(way)}"


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
