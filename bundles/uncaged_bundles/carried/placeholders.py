"""Placeholders of calls: `${result-N}` is the data of an earlier call, `${entity-N}` a named thing; both take a path.

A value that is filled in is text: null as nothing, numbers, booleans, objects and arrays as JSON. Filled-in text is not read again.
Types for checkers are in ``placeholders.pyi``.
"""

import json
import re

REFERENCE = re.compile(r"\$\{(result|entity)-([0-9]{1,6})((?:\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]{1,6}\])*)\}")
PATH_PART = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]+)\]")


class BadReference(Exception):
    """A placeholder that names nothing; the message says which, and in what text."""


def resolve(value, results, entities, mode="throw", *, as_data=(), kinds=("result", "entity")):
    """Fill all texts of a value.

    mode: a path that leads nowhere is an error, becomes the thing's name, or stays; "off" leaves all paths as they are.
    as_data: keys of the value, a mapping, where a text that is one placeholder becomes the data itself.
    kinds: placeholders of other kinds stay.
    """
    if isinstance(value, str):
        return REFERENCE.sub(
            lambda match: as_text(look_up(match, value, results, entities, mode)) if match[1] in kinds else match[0], value
        )
    if isinstance(value, list):
        return [resolve(item, results, entities, mode, kinds=kinds) for item in value]
    if isinstance(value, dict):
        return {
            key: data_of(item, results, entities, mode)
            if key in as_data
            else resolve(item, results, entities, mode, kinds=kinds)
            for key, item in value.items()
        }
    return value


def data_of(value, results, entities, mode):
    whole = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return look_up(whole, value, results, entities, mode) if whole else resolve(value, results, entities, mode)


def look_up(match, text, results, entities, mode):
    """Return the value of one placeholder; its own text if the mode leaves it."""
    kind, number, path = match[1], int(match[2]), match[3]
    among = results if kind == "result" else entities
    if number >= len(among):
        raise BadReference(f'{kind.capitalize()} reference not found: {match[0]} in "{text[:200]}"')
    thing = among[number]
    if not path:
        return name_of(thing) if kind == "entity" else thing
    if mode == "off":
        return match[0]
    for key, index in PATH_PART.findall(path):
        part = key if key else int(index)
        is_key = isinstance(part, str) and isinstance(thing, dict) and part in thing
        if is_key or (isinstance(part, int) and isinstance(thing, list) and part < len(thing)):
            thing = thing[part]
        elif mode == "fallback-to-name":
            return name_of(among[number])
        elif mode == "passthrough":
            return match[0]
        else:
            raise BadReference(f'{kind.capitalize()} path did not resolve: {match[0]} in "{text[:200]}"')
    return thing


def name_of(thing):
    return thing.get("name", thing) if isinstance(thing, dict) else thing


def as_text(value):
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
