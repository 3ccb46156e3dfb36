"""Entity types that a pack declares: a list of values, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass, field

from ..grammar.syntax import UNDEFINED

MAX_VALUES = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityType:
    """A type of captured values that a pack declares. values: what a person may say, without case,
    and its value; pattern: a regular expression for the whole text. One of the two is set.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    pattern: str = ""

    def reader(self) -> Callable[[str], object]:
        """Return the reader of the type: it returns the value of a text, or `UNDEFINED`."""
        if self.pattern:
            pattern = re.compile(self.pattern, re.IGNORECASE)
            return lambda text: text if pattern.fullmatch(text) else UNDEFINED
        return lambda text: self.values.get(text.casefold(), UNDEFINED)


def read_entity_type(name: str, raw: object, path: shapes.Path) -> EntityType:
    """Check an entry of a pack's ``entities``: a list of values, a mapping from text to value under
    ``values``, or a ``pattern``.

    Raises:
        ShapeError: the entry is not valid; with its path.
    """
    if not _NAME.fullmatch(name):
        raise shapes.ShapeError(path, "an entity type is named by letters, digits and '_'")
    if isinstance(raw, list):
        raw = {"values": raw}
    fields = shapes.mapping(raw, path)
    shapes.known_keys(fields, ("values", "pattern"), path)
    if len(fields) != 1:
        raise shapes.ShapeError(path, "has either values or a pattern")
    if "pattern" in fields:
        pattern = shapes.filled(fields["pattern"], (*path, "pattern"))
        try:
            re.compile(pattern)
        except re.error as exc:
            raise shapes.ShapeError(
                (*path, "pattern"), f"{pattern!r} is no regular expression: {exc}"
            ) from exc
        return EntityType(pattern=pattern)
    values = fields["values"]
    if isinstance(values, list):
        values = {text: text for text in shapes.texts(values, (*path, "values"))}
    found = shapes.mapping(values, (*path, "values"))
    if not 0 < len(found) <= MAX_VALUES:
        raise shapes.ShapeError(
            (*path, "values"), f"has {len(found):,} values; a type has 1 to {MAX_VALUES:,}"
        )
    return EntityType(values={text.casefold(): value for text, value in found.items()})
