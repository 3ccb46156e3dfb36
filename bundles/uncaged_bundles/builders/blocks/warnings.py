"""Warnings about valid block flows that may not do what their authors meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

from uncaged_bundles.carried.template import PLACEHOLDER, parse_path

from .mask import MARK, is_credential
from .nesting import INNER

SETTERS = ("resultVariable", "responseVariable", "itemVariable", "indexVariable")
DEFAULT_NAMES = frozenset({"item", "index"})
"""Variables that a loop sets if its block names no others."""
WITHOUT_PLACEHOLDERS = frozenset({*SETTERS, "variables", "expression", "description", "name"})
"""Keys of a block whose texts have no placeholders."""


def find_warnings(steps: list[Any], variables: Collection[str]) -> list[str]:
    """Return a sentence for each placeholder without a variable and each credential that the file
    has as text.

    Args:
        variables: the names that the start block declares.
    """
    known = {*variables, *DEFAULT_NAMES, *_set_by(steps)}
    unknown = [
        f"{place}: ${{{path}}} names no variable and would stay as it is{_nearest(path, known)}"
        for place, _, text in _texts(steps, "block ")
        for path in PLACEHOLDER.findall(text)
        if (parts := parse_path(path)) and parts[0] not in known
    ]
    credentials = [
        f"{place}{f', {name!r}' if name else ''} holds a credential as text, which the bundle and its journals keep; "
        "store it with 'uncaged-workflow keys set NAME' and write secret:NAME"
        for place, name, text in _texts(steps, "block ")
        if is_credential(name, text) and MARK not in text
    ]
    return [*dict.fromkeys(unknown), *dict.fromkeys(credentials)]


def _set_by(steps: list[Any]) -> Iterator[str]:
    for step in steps:
        config = step["config"]
        yield from (str(config[key]) for key in SETTERS if config.get(key))
        for key in INNER.get(step["type"], ()):
            yield from _set_by(config.get(key, []))


def _texts(steps: list[Any], before: str) -> Iterator[tuple[str, str, str]]:
    """Yield each text that may have placeholders: its block, the name of its field (empty outside
    lists of fields), the text.
    """
    for number, step in enumerate(steps, 1):
        inner = INNER.get(step["type"], ())
        for key, value in step["config"].items():
            if key in inner:
                yield from _texts(value, f"{before}{number}.")
            elif key not in WITHOUT_PLACEHOLDERS:
                yield from (
                    (f"{before}{number} ({step['type']})", name, text)
                    for name, text in _leaves(value, "")
                )


def _leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case {"key": str(key), "value": inner}:
            yield from _leaves(inner, key)
        case list():
            for item in value:
                yield from _leaves(item, name)
        case dict():
            for key, item in value.items():
                yield from _leaves(item, str(key))
        case _:
            return


def _nearest(path: str, known: Collection[str]) -> str:
    near = get_close_matches(str(parse_path(path)[0]), sorted(known), n=1)
    return f"; did you mean ${{{near[0]}}}?" if near else ""
