"""Facts about an element of a page: its kind, names, attributes, neighbours and place. They tell an
element when no alternative of a target matches any longer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uncaged_bundles import shapes

__all__ = ["ElementFacts", "read_facts"]

MAX_CHARACTERS = 200
MAX_TEXTS = 8
LISTS = ("near", "options")
KEYS = {"test_id": "testId"}
"""Keys in JSON that differ from the names of the fields."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElementFacts:
    """What a person sees of an element, and what its author wrote about it; never a field's value.

    type: of a field or button; ``contenteditable`` of an area for writing that is none. label,
    placeholder, title: of a field. field: its ``name`` attribute. href: of a link, without numbers.
    host: where a link or a form leads, if that is not the page's host. options: the first labels of
    a list. near: texts around it, the nearest first. heading: the last one before it. form,
    landmark: titles of the parts that it is in. place: left, top, width and height on the page, in
    pixels.
    """

    tag: str = ""
    type: str = ""
    role: str = ""
    name: str = ""
    label: str = ""
    placeholder: str = ""
    text: str = ""
    title: str = ""
    id: str = ""
    test_id: str = ""
    field: str = ""
    href: str = ""
    autocomplete: str = ""
    host: str = ""
    heading: str = ""
    form: str = ""
    landmark: str = ""
    options: Sequence[str] = ()
    near: Sequence[str] = ()
    place: Sequence[float] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the different texts by which a person names the element."""
        texts = (self.name, self.label, self.placeholder, self.text, self.title)
        return tuple(dict.fromkeys(text for text in texts if text))

    def document(self) -> dict[str, object]:
        """Return the facts as JSON data, without those that are empty."""
        values = {KEYS.get(one.name, one.name): getattr(self, one.name) for one in FIELDS}
        return {
            key: value if isinstance(value, str) else list(value)
            for key, value in values.items()
            if value
        }

    def __str__(self) -> str:
        kind = self.role or self.tag
        name = next(iter(self.names), "")
        return f'{kind} "{name}"' if name else kind


FIELDS = dataclasses.fields(ElementFacts)


def read_facts(value: object, path: shapes.Path) -> ElementFacts:
    """Read the facts about an element.

    Raises:
        ShapeError: they are malformed.
    """
    fields = shapes.mapping(value, path)
    shapes.known_keys(fields, [KEYS.get(one.name, one.name) for one in FIELDS], path)
    names = {key: name for name, key in KEYS.items()}
    found: dict[str, str | list[str] | list[float]] = {}
    for key, one in fields.items():
        place: shapes.Path = (*path, key)
        if key == "place":
            found[key] = [shapes.number(item, place) for item in shapes.items(one, place)][:4]
        elif key in LISTS:
            found[key] = [_short(text, place) for text in shapes.texts(one, place)[:MAX_TEXTS]]
        else:
            found[names.get(key, key)] = _short(one, place)
    return ElementFacts(**found)  # type: ignore[arg-type]  # each value was read by the kind of its key


def _short(value: object, path: shapes.Path) -> str:
    text = shapes.text(value, path)
    if len(text) > MAX_CHARACTERS:
        raise shapes.ShapeError(path, f"has {len(text)} characters; at most {MAX_CHARACTERS}")
    return text
