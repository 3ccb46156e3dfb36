"""Methods and properties of texts, lists and numbers in value expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles.records import dataclass

from uncaged_dispatcher.grammar.limits import MAX_TEXT
from uncaged_dispatcher.grammar.numbers import fixed_text, number_text
from uncaged_dispatcher.grammar.syntax import UNDEFINED


class MethodError(Exception):
    """Arguments that a method does not take."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method: kinds of its arguments, how many are needed, the kind of its result, its code.

    With ``more`` the last kind may be repeated. An empty kind takes any value.
    """

    arguments: tuple[str, ...]
    needed: int
    result: str
    call: Callable[..., object]
    more: bool = False


def _limited(length: int) -> None:
    if length > MAX_TEXT:
        raise MethodError(f"the text would have more than {MAX_TEXT:,} characters")


def _bounds(length: int, begin: float, end: float | None) -> slice:
    """Return the slice between two places, which count from the end when negative."""
    last = length if end is None else _place(end, length)
    return slice(_place(begin, length), last)


def _place(place: float, length: int) -> int:
    place = _clamped(place, -length, length)
    return place if place >= 0 else place + length


def _clamped(value: float, least: int, most: int) -> int:
    """Return the whole number of a place within limits, 0 for NaN."""
    return 0 if math.isnan(value) else int(min(max(value, least), most))


def _slice(value: Any, begin: float = 0, end: float | None = None) -> object:
    return value[_bounds(len(value), begin, end)]


def _at(value: Any, place: float = 0) -> object:
    index = _clamped(place, -len(value) - 1, len(value))
    return value[index] if -len(value) <= index < len(value) else UNDEFINED


def _char_at(text: str, place: float = 0) -> str:
    index = _clamped(place, -1, len(text))
    return text[index] if 0 <= index < len(text) else ""


def _substring(text: str, begin: float, end: float | None = None) -> str:
    first = _clamped(begin, 0, len(text))
    last = len(text) if end is None else _clamped(end, 0, len(text))
    return text[min(first, last) : max(first, last)]


def _padding(text: str, length: float, filler: str = " ") -> str:
    missing = _clamped(length, 0, MAX_TEXT + 1) - len(text)
    _limited(len(text) + missing)
    return (filler * (missing // len(filler) + 1))[:missing] if missing > 0 and filler else ""


def _repeat(text: str, count: float) -> str:
    if not 0 <= count < float("inf"):
        raise MethodError("a text is repeated 0 times or more")
    _limited(len(text) * int(count))
    return text * int(count)


def _replace_all(text: str, old: str, new: str) -> str:
    _limited(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _split(text: str, separator: str | None = None, limit: float | None = None) -> list[str]:
    if separator is None:
        return [text]
    pieces = text.split(separator) if separator else list(text)
    return pieces if limit is None else pieces[: _clamped(limit, 0, len(pieces))]


def _join(items: Sequence[object], separator: str = ",") -> str:
    texts = ["" if item is None or item is UNDEFINED else scalar_text(item) for item in items]
    _limited(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _concat_texts(*texts: str) -> str:
    _limited(sum(map(len, texts)))
    return "".join(texts)


def _index_of(items: Sequence[object], item: object) -> int:
    return next((i for i, other in enumerate(items) if same(other, item)), -1)


def _last_index_of(items: Sequence[object], item: object) -> int:
    found = _index_of(items[::-1], item)
    return len(items) - 1 - found if found >= 0 else -1


def _to_fixed(value: float, digits: float = 0) -> str:
    if not 0 <= digits <= 100:
        raise MethodError("a number has 0 to 100 places after its point")
    return fixed_text(value, int(digits))


def scalar_text(value: object) -> str:
    """Return a text, a number, a truth value or null as text."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case _:
            raise MethodError("a list or an object is no text; name one of its values")


def same(left: object, right: object) -> bool:
    """Return whether two values are equal and of one type."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


_TEXT_PLACE = ("number",)
STRING_METHODS: Mapping[str, Method] = {
    "at": Method(_TEXT_PLACE, 0, "string", _at),
    "charAt": Method(_TEXT_PLACE, 0, "string", _char_at),
    "concat": Method(("string",), 0, "string", _concat_texts, more=True),
    "endsWith": Method(("string",), 1, "boolean", str.endswith),
    "includes": Method(("string",), 1, "boolean", str.__contains__),
    "indexOf": Method(("string",), 1, "number", str.find),
    "lastIndexOf": Method(("string",), 1, "number", str.rfind),
    "padEnd": Method(("number", "string"), 1, "string", lambda t, *a: t + _padding(t, *a)),
    "padStart": Method(("number", "string"), 1, "string", lambda t, *a: _padding(t, *a) + t),
    "repeat": Method(("number",), 1, "string", _repeat),
    "replace": Method(
        ("string", "string"), 2, "string", lambda t, old, new: t.replace(old, new, 1)
    ),
    "replaceAll": Method(("string", "string"), 2, "string", _replace_all),
    "slice": Method(("number", "number"), 0, "string", _slice),
    "split": Method(("string", "number"), 0, "array", _split),
    "startsWith": Method(("string",), 1, "boolean", str.startswith),
    "substring": Method(("number", "number"), 1, "string", _substring),
    "toLowerCase": Method((), 0, "string", str.lower),
    "toString": Method((), 0, "string", str),
    "toUpperCase": Method((), 0, "string", str.upper),
    "trim": Method((), 0, "string", str.strip),
    "trimEnd": Method((), 0, "string", str.rstrip),
    "trimStart": Method((), 0, "string", str.lstrip),
}
ARRAY_METHODS: Mapping[str, Method] = {
    "at": Method(("number",), 0, "", _at),
    "concat": Method(
        ("array",), 0, "array", lambda *lists: [i for x in lists for i in x], more=True
    ),
    "includes": Method(("",), 1, "boolean", lambda items, item: _index_of(items, item) >= 0),
    "indexOf": Method(("",), 1, "number", _index_of),
    "join": Method(("string",), 0, "string", _join),
    "lastIndexOf": Method(("",), 1, "number", _last_index_of),
    "reverse": Method((), 0, "array", lambda items: items[::-1]),
    "slice": Method(("number", "number"), 0, "array", _slice),
    "toReversed": Method((), 0, "array", lambda items: items[::-1]),
}
NUMBER_METHODS: Mapping[str, Method] = {
    "toFixed": Method(("number",), 0, "string", _to_fixed),
    "toString": Method((), 0, "string", number_text),
}
METHODS: Mapping[str, Mapping[str, Method]] = {
    "string": STRING_METHODS,
    "array": ARRAY_METHODS,
    "number": NUMBER_METHODS,
    "boolean": {"toString": Method((), 0, "string", scalar_text)},
}
"""The methods by the kind of their object; objects and null have none."""
