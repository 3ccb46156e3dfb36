"""Field that a server requires by now, which a parameter of the flow gives."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

from uncaged_bundles.syntax import parse_module

from ..candidates import FixCandidate
from ..case import FixCase
from ..likeness import likeness
from ..machine import Machine

__all__ = ["candidates"]

REFUSED = ("status 400", "status 422")
NAMES = (
    re.compile(
        r"(?i)(?:missing|required|requires|lacks)(?: (?:the|a|required|field|parameter|property|key|argument|query|is))*"
        r":? *['\"`](?P<name>[A-Za-z_][\w-]*)['\"`]"
    ),
    re.compile(
        r"(?i)['\"`](?P<name>[A-Za-z_][\w-]*)['\"`](?: (?:field|parameter|property|query))?"
        r"(?: is)?(?: a)? (?:missing|required)"
    ),
    re.compile(r"(?i)(?:missing|required)(?: (?:field|parameter|property))+:? (?P<name>[a-z_]\w*)"),
    re.compile(r"(?i)\b(?P<name>[a-z_]\w*) is (?:required|missing)"),
)
SAME = 0.95


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the field in its request."""
    del machine
    failed = case.failed
    if failed is None or failed.word not in REFUSED or failed.step.kind != "http":
        return
    if not isinstance(failed.step.body, Mapping) or not isinstance(failed.step.outcome, Mapping):
        return
    names = required_names(failed.step.outcome, failed.step.body)
    if len(names) != 1:
        listed = ", ".join(sorted(names)) or "no field"
        yield f"the request was refused, and the answer names {listed} as missing"
        return
    [name] = names
    named = [
        str(one["name"])
        for one in case.parameters
        if likeness(name, str(one["name"])) >= SAME
        and case.params.get(str(one["name"])) is not None
    ]
    if not named:
        yield f"the field {name!r} is required by now, and no parameter of this run gives it"
    for parameter in named:
        text = with_field(case.text, name, parameter, str(failed.step.body.get("method", "GET")))
        if text is None:
            yield f"the field {name!r} is required by now, and the script has no one request to add it to"
        else:
            why = f"the server requires the field {name!r} by now; the parameter {parameter!r} gives it"
            yield FixCandidate(kind="required-field", recipe=case.with_text(text), why=why)


def required_names(outcome: Mapping[str, object], body: Mapping[str, object]) -> set[str]:
    """Return the names that an answer says are missing and the request does not have."""
    value = outcome.get("json", outcome.get("text", ""))
    texts = [value if isinstance(value, str) else text for text in _texts(value)]
    found = {match["name"] for text in texts for name in NAMES for match in name.finditer(text)}
    found |= set(_listed(value))
    sent = {str(key) for part in ("query", "json", "form") for key in _keys(body.get(part))}
    return {name for name in found if name not in sent and name.lower() not in WORDS}


WORDS = frozenset({"field", "parameter", "property", "value", "this", "it", "error", "message"})


def with_field(text: str, name: str, parameter: str, method: str) -> str | None:
    """Return the script with a field of a parameter in its one request; None if there is none, or
    several.
    """
    calls = [
        node
        for node in ast.walk(parse_module(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "http"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).upper() == method.upper()
    ]
    if len(calls) != 1:
        return None
    [call] = calls
    value = f"params.{parameter}" if parameter.isidentifier() else f'params["{parameter}"]'
    parts = {
        word.arg: word.value for word in call.keywords if word.arg in ("json", "form", "query")
    }
    for key in ("json", "form", "query"):
        if key not in parts:
            continue
        fields = parts[key]
        if not isinstance(fields, ast.Dict):
            return None
        comma = ", " if fields.keys else ""
        return _inserted(text, fields, f"{comma}{json.dumps(name)}: {value}")
    if method.upper() != "GET":
        return None
    return _inserted(text, call, f", query={{{json.dumps(name)}: {value}}}")


def _inserted(text: str, node: ast.expr, more: str) -> str | None:
    """Return the text with *more* before the bracket that ends a node."""
    lines = text.encode().split(b"\n")
    line, column = (node.end_lineno or 1) - 1, (node.end_col_offset or 1) - 1
    head = b"\n".join([*lines[:line], lines[line][:column]]).rstrip()
    rest = b"\n".join([lines[line][column:], *lines[line + 1 :]])
    comma = more.removeprefix(", ") if head.endswith(b",") else more
    changed = (head + comma.encode() + rest).decode()
    try:
        parse_module(changed)
    except SyntaxError:
        return None
    return changed


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case _:
            pass


def _listed(value: object) -> Iterator[str]:
    """Yield the names in the usual forms of lists of errors."""
    match value:
        case Mapping():
            for key, one in value.items():
                if key in ("missing", "required") and isinstance(one, list):
                    yield from (str(name) for name in one)
                elif key in ("missing", "required") and isinstance(one, str) and one.isidentifier():
                    yield one
                else:
                    yield from _listed(one)
            text = " ".join(str(one) for one in value.values() if isinstance(one, str)).lower()
            if "required" in text or "missing" in text:
                for key in ("field", "param", "parameter", "name", "path"):
                    if isinstance(value.get(key), str):
                        yield str(value[key])
                place = value.get("loc")
                if isinstance(place, list) and place:
                    yield str(place[-1])
        case list():
            for one in value:
                yield from _listed(one)
        case _:
            pass


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (str(key) for key in value)
