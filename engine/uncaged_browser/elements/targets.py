"""Targets: the ways in which a step names one element of a page.

A target is a list of alternatives, the most meaningful first. As JSON an alternative is a mapping
with one of the keys of `WAYS`: ``{"role": "button", "name": "Save"}``, ``{"label": "E-mail"}``,
``{"css": "#save"}``. Of several matches, ``"near": "Blue Lamp"`` takes those that this text is
nearest to, such as the button in the row of the lamp; a list of texts those that all are near.
``"nth": 2`` takes the third match (from 0) of the rest of the mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

__all__ = ["WAYS", "ElementName", "ElementTarget", "Way", "read_frames", "read_target"]

Way = Literal["ref", "role", "label", "placeholder", "testId", "text", "css", "xpath"]
WAYS: tuple[Way, ...] = get_args(Way)
"""ref: a reference of the page view. role: with the accessible name as ``name``. text: of the
element itself. The css of an element in an open shadow root is found, too.
"""
MAX_ALTERNATIVES = 20
MAX_FRAMES = 10
MAX_NEAR = 4
MAX_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementName:
    """One way to find an element. name: of a role; None for any. near: texts that are nearer to it
    than to the other matches. nth: of several matches, from 0. exact: names and texts are equal to
    it; else they contain it, in any case.
    """

    way: Way
    value: str
    name: str | None = None
    near: tuple[str, ...] = ()
    nth: int | None = None
    exact: bool = True

    def document(self) -> dict[str, object]:
        """Return the alternative as JSON data."""
        return {
            self.way: self.value,
            **({} if self.name is None else {"name": self.name}),
            **self._near(),
            **({} if self.nth is None else {"nth": self.nth}),
            **({} if self.exact else {"exact": False}),
        }

    def __str__(self) -> str:
        name = "" if self.name is None else f' "{self.name}"'
        nth = "" if self.nth is None else f" ({self.nth + 1}. match)"
        near = f" near {', '.join(map(repr, self.near))}" if self.near else ""
        return f"{self.way} {self.value}{name}{near}{nth}"

    def _near(self) -> dict[str, object]:
        if not self.near:
            return {}
        return {"near": self.near[0] if len(self.near) == 1 else list(self.near)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementTarget:
    """Names of one element. frames: targets of the frames that it is in, the outermost first."""

    alternatives: tuple[ElementName, ...]
    frames: tuple[tuple[ElementName, ...], ...] = ()

    def __str__(self) -> str:
        return " | ".join(map(str, self.alternatives))


def read_target(value: object, path: shapes.Path) -> tuple[ElementName, ...]:
    """Read the alternatives of a target: a list of mappings, or one mapping.

    Raises:
        ShapeError: they are malformed.
    """
    found = [value] if isinstance(value, Mapping) else shapes.items(value, path)
    if not 0 < len(found) <= MAX_ALTERNATIVES:
        raise shapes.ShapeError(
            path, f"needs 1 to {MAX_ALTERNATIVES} alternatives, not {len(found)}"
        )
    return tuple(_read_alternative(one, (*path, index)) for index, one in enumerate(found))


def read_frames(value: object, path: shapes.Path) -> tuple[tuple[ElementName, ...], ...]:
    """Read the frames of a target: a list of targets, the outermost first.

    Raises:
        ShapeError: they are malformed.
    """
    found: Sequence[object] = shapes.items(value, path)
    if len(found) > MAX_FRAMES:
        raise shapes.ShapeError(path, f"has {len(found)} frames; at most {MAX_FRAMES} are followed")
    return tuple(read_target(one, (*path, index)) for index, one in enumerate(found))


def _read_alternative(value: object, path: shapes.Path) -> ElementName:
    fields = shapes.mapping(value, path)
    shapes.known_keys(fields, (*WAYS, "name", "near", "nth", "exact"), path)
    ways = [way for way in WAYS if way in fields]
    if len(ways) != 1:
        raise shapes.ShapeError(path, f"needs exactly one of {', '.join(WAYS)}")
    way = ways[0]
    if "name" in fields and way != "role":
        raise shapes.ShapeError((*path, "name"), "goes with role")
    nth = fields.get("nth")
    if nth is not None and shapes.whole(nth, (*path, "nth")) < 0:
        raise shapes.ShapeError((*path, "nth"), "is counted from 0")
    name = fields.get("name")
    return ElementName(
        way=way,
        value=_short(fields[way], (*path, way)),
        name=None if name is None else _short(name, (*path, "name"), empty=True),
        near=_read_near(fields.get("near", []), (*path, "near")),
        nth=None if nth is None else shapes.whole(nth, (*path, "nth")),
        exact=shapes.truth(fields.get("exact", True), (*path, "exact")),
    )


def _read_near(value: object, path: shapes.Path) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else shapes.items(value, path)
    if len(texts) > MAX_NEAR:
        raise shapes.ShapeError(path, f"has {len(texts)} texts; at most {MAX_NEAR} are searched")
    return tuple(_short(text, (*path, index)) for index, text in enumerate(texts))


def _short(value: object, path: shapes.Path, *, empty: bool = False) -> str:
    text = shapes.text(value, path) if empty else shapes.filled(value, path)
    if len(text) > MAX_CHARACTERS:
        raise shapes.ShapeError(path, f"has {len(text)} characters; at most {MAX_CHARACTERS}")
    return text
