"""Path that is gone, with one of unique likeness that exists."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..candidates import FixCandidate
from ..case import FixCase, Recipe
from ..machine import Machine
from ..values import absolute, is_default

__all__ = ["candidates"]

PATH = r"(?P<path>[^\s'\"‘’:(),]*[/.][^\s'\"‘’:(),]*)"
MISSING = (
    re.compile(rf"{PATH}['’]?: No such file or directory"),
    re.compile(r"No such file or directory: ['\"](?P<path>[^'\"]+)['\"]"),
    re.compile(rf"(?:cannot (?:open|access|stat|find)|can't open(?: file)?) ['\"‘]?{PATH}"),
)


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the new path in place of the missing one."""
    path = missing_path(case)
    if path is None or (machine.directory / path).exists():
        return
    absolute = os.path.normpath(machine.directory / path)
    forms = dict.fromkeys((path, absolute, relative(absolute, machine.directory)))
    old = next((form for form in forms if is_stated(case, form, machine.directory)), None)
    if old is None:
        yield f"the path {path} is missing; it is not in the flow, so it was given by the caller"
        return
    found = machine.moved(Path(absolute))
    if not found:
        yield f"the path {path} is missing, and none near it is like it"
    for new in found:
        target = str(new) if old.startswith("/") else relative(str(new), machine.directory)
        gone, instead = moved_part(old, target, machine.directory)
        recipe = readable(case, replaced(case.recipe, gone, instead), target, machine.directory)
        why = f"the path {path} is gone; {target} is the one like it"
        yield FixCandidate(kind="moved-path", recipe=recipe, why=why)


def missing_path(case: FixCase) -> str | None:
    """Return the path that the flow's error says is missing."""
    text = case.message
    for pattern in MISSING:
        if found := pattern.search(text):
            return found["path"]
    return None


def relative(path: str, directory: Path) -> str:
    """Return an absolute path from a directory that holds it, else the path itself."""
    below = Path(path)
    return str(below.relative_to(directory)) if below.is_relative_to(directory) else path


def is_stated(case: FixCase, path: str, directory: Path) -> bool:
    """Tell whether the recipe states a path, or a directory above it that is gone as well."""
    by_caller = {
        str(value) for name, value in case.params.items() if not _has_default(case, name, directory)
    }
    text = json.dumps(_places(case.recipe), ensure_ascii=False)
    for part in (path, *map(str, Path(path).parents)):
        if part in ("/", ".") or part in by_caller:
            return False
        if re.search(rf"(?<![\w./-]){re.escape(part)}(?![\w.-])", text):
            return part == path or not (directory / part).exists()
    return False


def replaced(recipe: Recipe, old: str, new: str) -> dict[str, Any]:
    """Return the recipe with a path replaced in its script, policy and defaults."""
    place = re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w.-])")

    def change(value: Any) -> Any:
        match value:
            case str():
                return place.sub(lambda _: new, value)
            case dict():
                return {key: change(one) for key, one in value.items()}
            case list():
                return [change(one) for one in value]
            case _:
                return value

    return {**recipe, **{key: change(one) for key, one in _places(recipe).items()}}


def readable(case: FixCase, recipe: Recipe, path: str, directory: Path) -> Recipe:
    """Return the recipe with a path among those that its script may read, if none covers it."""
    changed = replace(case, recipe=recipe)
    listed = changed.limits("script").get("read", [])
    defaults = {f"param:{one.get('name')}": one.get("default") for one in changed.parameters}
    entries = [absolute(str(defaults.get(entry, entry)), directory) for entry in listed]
    if any((directory / path).is_relative_to(one) for one in entries):
        return recipe
    return changed.with_limits("script", read=[*listed, path])


def _places(recipe: Recipe) -> dict[str, Any]:
    return {key: recipe[key] for key in ("script", "policy", "parameters") if key in recipe}


def _has_default(case: FixCase, name: str, directory: Path) -> bool:
    return any(
        one.get("name") == name and is_default(case.params[name], one.get("default"), directory)
        for one in case.parameters
    )


def moved_part(path: str, new: str, directory: Path) -> tuple[str, str]:
    """Return the part of a missing path that is gone, and what takes its place: without the names
    at the end that both have.
    """
    old, other = Path(path), Path(new)
    while old.name == other.name and old.parent.name and not (directory / old.parent).exists():
        old, other = old.parent, other.parent
    return str(old), str(other)
