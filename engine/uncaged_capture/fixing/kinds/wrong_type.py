"""Parameter of another type than a server or a script needs, or with a default that is not allowed
any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.values import convert, is_a

from ..candidates import FixCandidate
from ..case import FixCase
from ..likeness import likely, likeness
from ..machine import Machine

__all__ = ["candidates"]

MUST_BE = re.compile(
    r"(?i)['\"`]?\b(?P<name>[a-z_]\w*)['\"`]?:? (?:must be|should be|is not|expected)(?: a valid| an?)? "
    r"(?P<type>integer|int|number|float|boolean|bool|string)\b"
)
ONE_OF = re.compile(
    r"(?i)['\"`]?\b(?P<name>[a-z_]\w*)['\"`]? (?:must be|should be|is not|not)(?: one of| among| in)?:? *[\[(]?"
    r"(?P<values>['\"`]?[\w.-]+['\"`]?(?:(?:, (?:or )?| or |\|)['\"`]?[\w.-]+['\"`]?)+)"
)
MIXED_TYPES = re.compile(
    r"TypeError: .*'(?:int|float|str)' (?:and|to) '?(?:int|float|str)'?|TypeError: can only concatenate"
)
TYPES: Mapping[str, str] = {
    "int": "integer",
    "integer": "integer",
    "number": "number",
    "float": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "string": "string",
}


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with another type or default of one parameter."""
    del machine
    text = case.message
    if (found := MUST_BE.search(text)) is not None:
        yield from _other_type(case, found["name"], TYPES[found["type"].lower()])
    elif (listed := ONE_OF.search(text)) is not None:
        values = re.findall(r"[\w.-]+", re.sub(r"\bor\b", " ", listed["values"]))
        yield from _other_default(case, listed["name"], values)
    elif MIXED_TYPES.search(f"{case.word}: {text}") is not None and case.failed is None:
        named = [
            str(one["name"])
            for one in case.parameters
            if one.get("type", "string") == "string" and _is_number(case.params.get(one["name"]))
        ]
        if len(named) == 1:
            whole = str(case.params[named[0]]).lstrip("-").isdecimal()
            yield from _other_type(case, named[0], "integer" if whole else "number")
        else:
            yield f"text and numbers are mixed, and {len(named)} parameters are texts of a number"


def _other_type(case: FixCase, name: str, kind: str) -> Iterator[FixCandidate | str]:
    found = _parameter(case, name)
    if found is None:
        yield f"{name!r} is not of the type {kind}, and is no parameter"
        return
    value = case.params.get(str(found["name"]))
    if found.get("type", "string") == kind or value is None or not is_a(convert(value, kind), kind):
        yield f"the parameter {found['name']!r} is refused as no {kind}, and its value {value!r} is none"
        return
    changed: dict[str, Any] = {**found, "type": kind}
    if "default" in found:
        changed["default"] = convert(found["default"], kind)
    why = f"the parameter {found['name']!r} is a {found.get('type', 'string')}, and a {kind} is needed"
    yield FixCandidate(kind="wrong-type", recipe=case.with_parameter(changed), why=why)


def _other_default(case: FixCase, name: str, values: list[str]) -> Iterator[FixCandidate | str]:
    found = _parameter(case, name)
    if found is None or found.get("default") is None:
        return
    default = found["default"]
    if case.params.get(str(found["name"])) != default or default in values:
        yield f"{name!r} must be one of {', '.join(values)}; the value was given by the caller"
        return
    others = likely(str(default), values)
    if not others:
        yield f"{name!r} must be one of {', '.join(values)}, and none is like the default {default!r}"
    for other in others:
        why = f"the default {default!r} of {found['name']!r} is not allowed any more; {other!r} is, and is like it"
        changed = case.with_parameter({**found, "default": other})
        yield FixCandidate(kind="wrong-default", recipe=changed, why=why)


def _parameter(case: FixCase, name: str) -> Mapping[str, Any] | None:
    """Return the one parameter of a name, or the one that is like it."""
    return next(
        (one for one in case.parameters if likeness(name, str(one.get("name"))) >= 1.0), None
    )


def _is_number(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?\d+(?:\.\d+)?", value) is not None
