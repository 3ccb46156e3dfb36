"""Checks of plain data in descriptors, policies and the registry; an error has the dotted path."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from .errors import BundleError

__all__ = [
    "Path",
    "ShapeError",
    "filled",
    "items",
    "json_data",
    "known_keys",
    "mapping",
    "not_negative",
    "number",
    "one_of",
    "positive",
    "positive_whole",
    "required",
    "shown",
    "text",
    "texts",
    "truth",
    "whole",
    "whole_between",
]

Path = tuple[str | int, ...]
MAX_DEPTH = 64
_SHOWN_CHARACTERS = 80


class ShapeError(BundleError):
    """A value has the wrong shape; *path* leads to it from the outermost mapping."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{dotted(path)}: {problem}")
        self.path = path
        self.problem = problem


def dotted(path: Path) -> str:
    """Return a path as text: ``('roles', 'a', 0)`` is ``roles.a[0]``."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in path
    ).removeprefix(".")


def shown(value: object) -> str:
    """Return the repr of *value*, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def mapping(value: object, path: Path) -> dict[str, object]:
    """Return *value* if it is a dict whose keys are all text."""
    if not isinstance(value, dict):
        raise ShapeError(path, f"must be a mapping, not {shown(value)}")
    for key in value:
        if not isinstance(key, str):
            raise ShapeError(path, f"has the key {shown(key)}; keys must be text")
    return value


def known_keys(
    value: Mapping[str, object], known: Sequence[str] | frozenset[str], path: Path
) -> None:
    """Refuse any key of *value* that is not in *known*."""
    for key in value:
        if key not in known:
            from difflib import get_close_matches  # only a misspelt key pays for it

            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ShapeError(
                (*path, key),
                f"unknown key {shown(key)}; known here: {', '.join(sorted(known)) or 'none'}{hint}",
            )


def required(value: Mapping[str, object], key: str, path: Path) -> object:
    """Return the value of *key*, which must exist."""
    if key not in value:
        raise ShapeError((*path, key), "is missing")
    return value[key]


def text(value: object, path: Path) -> str:
    if not isinstance(value, str):
        raise ShapeError(path, f"must be text, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise ShapeError(
            path,
            f"{shown(value)} holds half of a surrogate pair at character {exc.start}; no file can hold that",
        ) from exc
    return value


def truth(value: object, path: Path) -> bool:
    if not isinstance(value, bool):
        raise ShapeError(path, f"must be True or False, not {shown(value)}")
    return value


def whole(value: object, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ShapeError(path, f"must be a whole number, not {shown(value)}")
    return value


def number(value: object, path: Path) -> float:
    if not _is_number(value):
        raise ShapeError(path, f"must be a number, not {shown(value)}")
    return value


def _is_number(value: object) -> TypeGuard[float]:
    """Tell a number that a float can hold; a longer one of a foreign file would overflow later."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max


def not_negative(value: object, path: Path) -> float:
    if number(value, path) < 0:
        raise ShapeError(path, f"must be a number of at least 0, not {shown(value)}")
    return number(value, path)


def positive(value: object, path: Path) -> float:
    if not _is_number(value) or value <= 0:
        raise ShapeError(path, f"must be a positive number, not {shown(value)}")
    return value


def texts(value: object, path: Path) -> list[str]:
    if not isinstance(value, list):
        raise ShapeError(path, f"must be a list of texts, not {shown(value)}")
    return [text(item, (*path, index)) for index, item in enumerate(value)]


def items(value: object, path: Path) -> list[object]:
    if not isinstance(value, list):
        raise ShapeError(path, f"must be a list, not {shown(value)}")
    return value


def filled(value: object, path: Path) -> str:
    """Return a text that is not blank."""
    if not text(value, path).strip():
        raise ShapeError(path, "is empty")
    return str(value)


def positive_whole(value: object, path: Path) -> int:
    if whole(value, path) < 1:
        raise ShapeError(path, f"must be a whole number above 0, not {shown(value)}")
    return whole(value, path)


def whole_between(least: int, most: int) -> Callable[[object, Path], int]:
    """Return a check that accepts whole numbers of a range, both ends included."""

    def check(value: object, path: Path) -> int:
        found = whole(value, path)
        if not least <= found <= most:
            raise ShapeError(
                path, f"must be a whole number from {least} to {most:,}, not {shown(value)}"
            )
        return found

    return check


def one_of(*words: str) -> Callable[[object, Path], str]:
    """Return a check that accepts exactly these words."""

    def check(value: object, path: Path) -> str:
        if value not in words or not isinstance(value, str):
            raise ShapeError(path, f"{shown(value)} is not one of {', '.join(words)}")
        return value

    return check


def json_data(value: object, path: Path, depth: int = 0) -> None:
    """Refuse data that JSON cannot represent: sets, bytes, tuples, keys that are no text, NaN,
    depth beyond 64.
    """
    if depth > MAX_DEPTH:
        raise ShapeError(path[:3], f"is nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool() | int():
            return
        case str():
            text(value, path)
        case float():
            if not math.isfinite(value):
                raise ShapeError(path, f"{value!r} is no JSON number")
        case list():
            for index, item in enumerate(value):
                json_data(item, (*path, index), depth + 1)
        case dict():
            for key, item in mapping(value, path).items():
                text(key, path)
                json_data(item, (*path, key), depth + 1)
        case _:
            raise ShapeError(
                path,
                f"{shown(value)} is no JSON value; use text, numbers, True, False, None, lists and dicts",
            )
