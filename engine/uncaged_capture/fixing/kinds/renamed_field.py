"""Renamed field of a JSON answer, or column of a CSV file: the flow reads a name that is gone, and
one new name is like it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from uncaged_bundles.syntax import parse_module

from ..candidates import FixCandidate
from ..case import FixCase, RecordedStep
from ..likeness import likely, likeness
from ..machine import Machine

__all__ = ["candidates"]

KEY_ERROR = re.compile(r"KeyError: (['\"])(?P<name>.+?)\1")
NO_ATTRIBUTE = re.compile(r"there is no (['\"])(?P<name>.+?)\1 here")
NO_COLUMN = re.compile(r"(?:no such column|unknown column|not in list)[:,]? *['\"]?(?P<name>\w+)")
MAX_FILE_BYTES = 1 << 20
MAX_ITEMS = 50
COMMON_CHARACTERS = 3
"""Values of so few characters are equal by chance."""

Shape = Mapping[str, Any]
"""An object of an answer: one set of fields."""


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the new name in place of the one that is missing."""
    name = missing_name(case) or vanished_name(case)
    if name is None or case.language not in ("python", "bash"):
        return
    del machine
    shapes = list(shapes_of(case.steps)) + list(shapes_of_files(case))
    if not shapes:
        yield f"the field {name!r} is missing, and no answer in the journal has fields"
        return
    if any(name in shape for shape in shapes):
        yield f"the field {name!r} is missing in one place, and an answer has it in another"
        return
    old = [shape for shape in shapes_of(case.before) if name in shape]
    found = new_names(name, shapes, old, case)
    if not found:
        known = ", ".join(sorted({key for shape in shapes for key in shape})[:20])
        yield f"the field {name!r} is missing, and no field of the answers is like it ({known})"
    for new in found:
        text = renamed(case.text, name, new, case.language, known=parameter_names(case))
        if text is None:
            yield f"the field {name!r} may be {new!r} by now, and the script does not read it in one way"
        else:
            why = f"the answer has no field {name!r} any more; {new!r} is like it and is new: it is read instead"
            yield FixCandidate(kind="renamed-field", recipe=case.with_text(text), why=why)


def missing_name(case: FixCase) -> str | None:
    """Return the name that the flow's error says is missing."""
    for pattern in (KEY_ERROR, NO_ATTRIBUTE, NO_COLUMN):
        if found := pattern.search(case.message):
            return found["name"]
    return None


def vanished_name(case: FixCase) -> str | None:
    """Return the one field that the script reads, that the last success had, and that no answer has
    any more: a script may fail later, at the None in its place.
    """
    if case.failed is not None:
        return None
    now = {key for shape in shapes_of(case.steps) for key in shape}
    before = {key for shape in shapes_of(case.before) for key in shape}
    gone = [
        key
        for key in sorted(before - now)
        if now and renamed(case.text, key, f"{key}_", case.language, known=parameter_names(case))
    ]
    return gone[0] if len(gone) == 1 else None


def new_names(name: str, shapes: list[Shape], old: list[Shape], case: FixCase) -> tuple[str, ...]:
    """Return the fields that may be the old one: those that the script does not read yet, and that
    the answers of the last success did not have.
    """
    known_before = {key for shape in old for key in shape}
    found: dict[str, float] = {}
    for shape in shapes:
        alike = [one for one in old if _same_object(shape, one, name)]
        if old and not alike:
            continue
        for key, value in shape.items():
            if key in known_before or is_read(case, key):
                continue
            score = max((_score(name, key, value, shape, one) for one in alike), default=0.0)
            if not old and likely(name, [key]):
                score = likeness(name, key)
            if score:
                found[key] = max(found.get(key, 0.0), score)
    return tuple(sorted(found, key=lambda key: -found[key]))


def _score(name: str, key: str, value: object, new: Shape, old: Shape) -> float:
    """Return how likely a new field of an object is the old one; 0 if it is not likely."""
    if type(old[name]) is not type(value):
        return 0.0
    like = likeness(name, key)
    only_change = set(old) - set(new) == {name} and set(new) - set(old) == {key}
    if only_change and _same_value(old[name], value):
        return 1.0 + like
    return like if likely(name, [key]) else 0.0


def _same_value(old: object, new: object) -> bool:
    """Whether two values tell that they are one field's: equal and not common, or objects with the
    same fields.
    """
    match old, new:
        case [Mapping() as one, *_], [Mapping() as other, *_]:
            return bool(one) and set(one) == set(other)
        case Mapping(), Mapping():
            return bool(old) and set(old) == set(new)
        case _:
            return old == new and len(json.dumps(old)) > COMMON_CHARACTERS


def _same_object(new: Shape, old: Shape, name: str) -> bool:
    """Whether an object is of the kind of an old one: it has most of its other fields."""
    others = set(old) - {name}
    return not others or len(others & set(new)) * 2 >= len(others)


def shapes_of(steps: tuple[RecordedStep, ...]) -> Iterator[Shape]:
    """Yield the objects in the answers of steps."""
    for step in steps:
        yield from shapes_of(step.parts)
        if not isinstance(step.outcome, Mapping):
            continue
        match step.kind:
            case "http":
                yield from objects_in(step.outcome.get("json"))
                yield from objects_in_text(str(step.outcome.get("text", "")))
            case "script":
                yield from objects_in_text(str(step.outcome.get("stdout", "")))
            case "fetch":
                yield from objects_in_text(str(step.outcome.get("text", "")))
            case "flow":
                yield from objects_in(step.outcome.get("data"))
            case _:
                pass


def shapes_of_files(case: FixCase) -> Iterator[Shape]:
    """Yield the objects and rows of the JSON and CSV files that the run's parameters name."""
    granted = case.limits("script").get("read", [])
    for name, value in case.params.items():
        if not isinstance(value, str) or not value.lower().endswith((".json", ".csv", ".tsv")):
            continue
        if f"param:{name}" not in granted and not any(value.startswith(one) for one in granted):
            continue
        path = Path(value)
        try:
            if not path.is_absolute() or path.stat().st_size > MAX_FILE_BYTES:
                continue
            text = path.read_text("utf-8-sig")
        except (OSError, ValueError):
            continue
        yield from rows_of(path, text) if path.suffix != ".json" else objects_in_text(text)


def rows_of(path: Path, text: str) -> Iterator[Shape]:
    """Yield the first row of a table with a header."""
    delimiter = (
        "\t"
        if path.suffix == ".tsv"
        else ";"
        if text.split("\n", maxsplit=1)[0].count(";")
        else ","
    )
    for row in islice(csv.DictReader(text.splitlines(), delimiter=delimiter), 1):
        yield {key: value for key, value in row.items() if isinstance(key, str)}


def objects_in_text(text: str) -> Iterator[Shape]:
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        yield from objects_in(json.loads(text))
    except (ValueError, RecursionError):
        return


def objects_in(value: object) -> Iterator[Shape]:
    """Yield all objects inside a JSON value; of a list the first ones."""
    if isinstance(value, Mapping):
        yield value
        for one in value.values():
            yield from objects_in(one)
    elif isinstance(value, list):
        for one in value[:MAX_ITEMS]:
            yield from objects_in(one)


def parameter_names(case: FixCase) -> frozenset[str]:
    return frozenset(str(one.get("name")) for one in case.parameters)


def is_read(case: FixCase, name: str) -> bool:
    """Whether the script reads a field of this name already."""
    known = parameter_names(case)
    return renamed(case.text, name, f"{name}_", case.language, known=known) is not None


def renamed(
    text: str, name: str, new: str, language: str, *, known: frozenset[str] = frozenset()
) -> str | None:
    """Return a script that reads the field *new* instead of *name*; None if it does not read it, or
    if what it writes may have that name, too.
    """
    if language == "bash":
        return _renamed_in_filters(text, name, new)
    quoted = re.escape(name)
    base = r"(?<!params)" if name in known else ""
    places = (
        rf"{base}(\[\s*(['\"])){quoted}(\2\s*\])(?!\s*=(?!=))",
        rf"{base}(\.get\(\s*(['\"])){quoted}(\2)",
    )
    changed, count = text, 0
    for place in places:
        changed, found = re.subn(place, lambda m: f"{m[1]}{new}{m[3]}", changed)
        count += found
    if name.isidentifier() and new.isidentifier():
        place = rf"{base}(?<=[\w\])])\.{quoted}\b(?!\s*(?:\(|=(?!=)))"
        changed, found = re.subn(place, f".{new}", changed)
        count += found
    try:
        parse_module(changed)
    except (SyntaxError, ValueError):
        return None
    return changed if count else None


def _renamed_in_filters(text: str, name: str, new: str) -> str | None:
    """Rename the field in the filters of `jq`."""
    if "jq" not in text or not new.isidentifier():
        return None
    changed, count = re.subn(rf"(?<![\w$/])\.{re.escape(name)}\b(?![/.]\w*\.)", f".{new}", text)
    return changed if count else None
