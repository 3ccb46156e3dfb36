"""Broken flow: its recipe, its past, the world before and after it broke, and the truth."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..outside.service import NOT_FOUND, Answer, Request, Service

__all__ = ["BrokenFlow", "Parameters", "Recipe", "World", "changed", "replaced"]

Parameters = Mapping[str, str]
Recipe = Mapping[str, Any]
Fix = Literal["one", "two", "none"]
"""Whether one edit is right, two look equally likely, or none can be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Things outside of a flow. files: texts by path. programs: texts of programs on PATH by name,
    or the absolute path of another one to link. answer: of the service, which without it knows no
    path. elsewhere: of a second service, which a flow does not know at first.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    answer: Callable[[Request], Answer] | None = None
    elsewhere: Callable[[Request], Answer] | None = None

    def build(self, directory: Path, programs: Path, service: Service, other: Service) -> None:
        """Make it, in place of the world before."""
        for place in (directory, programs):
            for old in sorted(place.rglob("*"), reverse=True):
                old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
            place.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        for name, text in self.programs.items():
            path = programs / name
            if text.startswith("/"):
                path.symlink_to(text)
            else:
                path.write_text(text, "utf-8")
                path.chmod(0o755)
        service.serve(self.answer or (lambda _: NOT_FOUND))
        other.serve(self.elsewhere or (lambda _: NOT_FOUND))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenFlow:
    """One case. past: parameters of the good threads. failing: those of the thread that fails, the
    original for the checker. others: two other sets. truth: the message that a right flow gives.
    sends: the requests other than GET that a right run makes, as JSON. right, mistaken: recipes
    that a model may write; None if no recipe is right.
    """

    name: str
    family: str
    fix: Fix
    recipe: Recipe
    past: Sequence[Parameters]
    failing: Parameters
    others: Sequence[Parameters]
    before: World
    after: World
    truth: Callable[[Parameters], str]
    right: Recipe | None
    mistaken: Recipe
    sends: Callable[[Parameters], Sequence[Any]] | None = None

    @property
    def flow(self) -> str:
        """Return the name of the flow."""
        return str(self.recipe.get("actionName") or self.recipe["name"])

    @property
    def sets(self) -> tuple[Parameters, ...]:
        """Return the parameters with which the checker runs a fixed flow."""
        return (self.failing, *self.others)

    def wrong(self, parameters: Parameters, message: str, sent: Sequence[Request]) -> str:
        """Return how a run with success differs from the truth; "" if it does not."""
        truth = self.truth(parameters)
        if message.strip() != truth:
            return f"with {dict(parameters)} the result is {message.strip()[:120]!r}, not {truth!r}"
        if self.sends is not None:
            bodies = [one.json or dict(one.form) for one in sent if one.method != "GET"]
            if bodies != list(self.sends(parameters)):
                return f"with {dict(parameters)} the service got {bodies}"
        return ""


def replaced(recipe: Recipe, old: str, new: str) -> Recipe:
    """Return a recipe with another text in its script and in its policy.

    Raises:
        ValueError: the text is not in it.
    """
    found: Any = _replaced(copy.deepcopy(dict(recipe)), old, new)
    if found == recipe:
        raise ValueError(f"{old!r} is not in the recipe {recipe.get('description')}")
    return dict(found)


def changed(recipe: Recipe, path: Sequence[str | int], value: object) -> Recipe:
    """Return a recipe with another value at a path of keys."""
    found: Any = copy.deepcopy(dict(recipe))
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return dict(found)


def _replaced(value: object, old: str, new: str) -> object:
    match value:
        case str():
            return value.replace(old, new)
        case list():
            return [_replaced(one, old, new) for one in value]
        case dict():
            return {key: _replaced(one, old, new) for key, one in value.items()}
        case _:
            return value
