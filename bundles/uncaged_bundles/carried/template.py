"""How a block's texts are filled from variables is defined here once, and the builder copies it word for word into each bundle.

`${path}` stands for the value at a path. One that leads nowhere stays as it is; what was filled in is not looked at again.
Types for checkers are in ``template.pyi``.
"""

import json
import re
from urllib.parse import quote

PLACEHOLDER = re.compile(r"""\$\{((?:[^{}"']|"[^"]*"|'[^']*')+)\}""")
FIRST_PART = re.compile(r"""[^\s.\[\]{}"'](?:[^.\[\]{}"']*[^\s.\[\]{}"'])?""")
NEXT_PART = re.compile(
    r"""\.(?P<key>[^\s.\[\]{}"'](?:[^.\[\]{}"']*[^\s.\[\]{}"'])?)"""
    r"""|\[(?:(?P<index>[0-9]{1,9})|"(?P<a>[^"]*)"|'(?P<b>[^']*)')\]"""
)
HOST_CHARACTERS = re.compile(r"[A-Za-z0-9.:-]*|\[[0-9A-Fa-f:.]+\]")


class BadText(Exception):
    """A text cannot be filled as it stands; the message says why."""


def parse_path(path):
    """Return the keys and indexes that a path is made of; nothing if it is no path."""
    first = FIRST_PART.match(path)
    parts, at = ([first.group()], first.end()) if first else ([], 0)
    while at < len(path):
        part = NEXT_PART.match(path, at)
        if not part or (part["key"] and not parts):
            return []
        keys = [part[name] for name in ("key", "a", "b") if part[name] is not None]
        parts.append(keys[0] if keys else int(part["index"]))
        at = part.end()
    return parts if parts and isinstance(parts[0], str) else []


def find_value(variables, path):
    """Return the value at a path, in a list; an empty list if the path leads nowhere."""
    parts = parse_path(path)
    if not parts or parts[0] not in variables:
        return []
    value = variables[parts[0]]
    for part in parts[1:]:
        if isinstance(value, str):
            value = enter_text(value)
        known = isinstance(part, str) and isinstance(value, dict) and part in value
        if not known and not (isinstance(part, int) and isinstance(value, list) and part < len(value)):
            return []
        value = value[part]
    return [value]


def enter_text(text):
    """Return what JSON held as text stands for; None if it is no JSON."""
    try:
        return read_json(text)
    except ValueError:
        return None


def read_json(text):
    """Return the value of a JSON text; ValueError for anything else, numbers without an end included."""
    try:
        return json.loads(text, parse_constant=refuse_number, parse_float=read_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def refuse_number(text):
    raise ValueError(f"{text} is no JSON number")


def read_number(text):
    number = float(text)
    return refuse_number(text) if number in (float("inf"), float("-inf")) else number


def to_text(value):
    return value if isinstance(value, str) else to_json(value)


def to_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fill(value, variables):
    """Fill every text in a value, however deep; what is no text stays as it is."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: fill_one(match, variables), value)
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, variables) for key, item in value.items()}
    return value


def fill_one(match, variables):
    found = find_value(variables, match[1])
    return to_text(found[0]) if found else match[0]


def fill_value(value, variables):
    """As `fill`, but a text that is one placeholder and nothing else becomes the value itself, whatever its type."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        found = find_value(variables, whole[1]) if whole else []
        return found[0] if found else fill(value, variables)
    if isinstance(value, list):
        return [fill_value(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: fill_value(item, variables) for key, item in value.items()}
    return value


def pieces_of(text, variables):
    """Yield the parts of a text: ``(literal, [])`` and ``("", [value])``."""
    at = 0
    for match in PLACEHOLDER.finditer(text):
        found = find_value(variables, match[1])
        if found:
            yield text[at : match.start()], []
            yield "", found
            at = match.end()
    yield text[at:], []


def fill_url(text, variables):
    """Fill an address: a value at its beginning is the address, one in its path or query is encoded, one in its host must be a host."""
    url, in_path = "", False
    for literal, found in pieces_of(text, variables):
        if not found:
            url += literal
            continue
        value = to_text(found[0])
        rest = url.partition("://")[2]
        if not url:
            url = value
        elif "://" in url and not any(mark in rest for mark in "/?#"):
            if not HOST_CHARACTERS.fullmatch(value):
                raise BadText(f"{value[:80]!r} cannot stand in the host of an address")
            url += value
        else:
            in_path = in_path or not any(mark in url for mark in "?#")
            url += quote(value, safe="")
    path = re.split("[?#]", url)[0]
    if in_path and any(part in (".", "..") for part in path.split("/")):
        raise BadText(f"dots alone cannot stand in the path of an address: {path[:80]}")
    return url.strip()


def fill_json(text, variables):
    """Fill a text that is JSON and return what it stands for. No value can become more than one value.

    Inside quotes a value is escaped; outside, text that is JSON by itself is taken as that.
    """
    filled, quoted = "", False
    for literal, found in pieces_of(text, variables):
        if not found:
            filled += literal
            quoted = ends_quoted(literal, quoted)
        elif quoted:
            filled += json.dumps(to_text(found[0]), ensure_ascii=False)[1:-1]
        else:
            value = found[0]
            alone = isinstance(value, str) and (enter_text(value) is not None or value.strip() == "null")
            filled += value if alone else to_json(value)
    try:
        return read_json(filled)
    except ValueError as exception:
        raise BadText(f"the body is not JSON: {exception}") from None


def ends_quoted(text, quoted):
    """Whether a part of JSON text ends inside quotes, if it began so or not."""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quoted:
            escaped = True
        elif character == '"':
            quoted = not quoted
    return quoted
