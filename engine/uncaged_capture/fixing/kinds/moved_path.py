"""Path that is gone, with one of unique likeness that exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..candidates import FixCandidate
from ..case import FixCase, Recipe
from ..machine import Machine

__all__ = ["candidates"]

MISSING = (
    re.compile(r"(?P<path>/[^\s'\"‘’:]+)['’]?: No such file or directory"),
    re.compile(r"No such file or directory: ['\"](?P<path>/[^'\"]+)['\"]"),
    re.compile(
        r"(?:cannot (?:open|access|stat|find)|can't open(?: file)?) ['\"‘]?(?P<path>/[^\s'\"‘’:]+)"
    ),
)


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the new path in place of the missing one."""
    path = missing_path(case)
    if path is None or Path(path).exists():
        return
    stated = stated_part(case, path)
    if stated is None:
        yield f"the path {path} is missing; it is not in the flow, so it was given by the caller"
        return
    found = machine.moved(Path(path))
    if not found:
        yield f"the path {path} is missing, and none near it is like it"
    for new in found:
        recipe = readable(case, replaced(case.recipe, *moved_part(path, str(new))), str(new))
        why = f"the path {path} is gone; {new} is the one like it"
        yield FixCandidate(kind="moved-path", recipe=recipe, why=why)


def missing_path(case: FixCase) -> str | None:
    """Return the absolute path that the flow's error says is missing."""
    text = case.message
    for pattern in MISSING:
        if found := pattern.search(text):
            return found["path"]
    return None


def stated_part(case: FixCase, path: str) -> str | None:
    """Return the part of a path that the recipe states: all of it, or a directory above it."""
    by_caller = {str(value) for name, value in case.params.items() if not _is_default(case, name)}
    text = json.dumps(_places(case.recipe), ensure_ascii=False)
    for part in (path, *map(str, Path(path).parents)):
        if part == "/" or any(one == part for one in by_caller):
            return None
        if re.search(rf"{re.escape(part)}(?![\w.-])", text):
            return part if part == path or not Path(part).exists() else None
    return None


def replaced(recipe: Recipe, old: str, new: str) -> dict[str, Any]:
    """Return the recipe with a path replaced in its script, policy and defaults."""
    place = re.compile(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])")

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


def readable(case: FixCase, recipe: Recipe, path: str) -> Recipe:
    """Return the recipe with a path among those that its script may read, if none covers it."""
    changed = replace(case, recipe=recipe)
    listed = changed.limits("script").get("read", [])
    defaults = {f"param:{one.get('name')}": one.get("default") for one in changed.parameters}
    entries = [str(defaults.get(entry, entry)) for entry in listed]
    if any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in entries):
        return recipe
    return changed.with_limits("script", read=[*listed, path])


def _places(recipe: Recipe) -> dict[str, Any]:
    return {key: recipe[key] for key in ("script", "policy", "parameters") if key in recipe}


def _is_default(case: FixCase, name: str) -> bool:
    return any(
        one.get("name") == name and one.get("default") == case.params[name]
        for one in case.parameters
    )


def moved_part(path: str, new: str) -> tuple[str, str]:
    """Return the part of a missing path that is gone, and what takes its place: without the names
    at the end that both have.
    """
    old, other = Path(path), Path(new)
    while old.name == other.name and not old.parent.exists():
        old, other = old.parent, other.parent
    return str(old), str(other)
