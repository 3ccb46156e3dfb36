"""An inferred parameter of a script in any language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A parameter that a script seems to take.

    flag: the option before it on the command line. switch: the flag has no value. place: its
    position on the command line, from 1, if it has no flag. With neither, it is read from the
    environment.
    """

    name: str
    kind: str = "string"
    required: bool = False
    default: object = None
    description: str = ""
    allowed: tuple[object, ...] = ()
    flag: str = ""
    switch: bool = False
    place: int | None = None

    def fields(self) -> dict[str, object]:
        """Return the parameter as a recipe lists it."""
        fields: dict[str, object] = {
            "name": self.name,
            "type": self.kind,
            "required": self.required,
            "description": self.description,
        }
        if self.default is not None:
            fields["default"] = self.default
        if self.allowed:
            fields["validation"] = {"allowedValues": list(self.allowed)}
        return fields


def kind_of(name: str, default: object = None) -> str:
    """Return a parameter's type as its default and its name suggest."""
    if isinstance(default, bool):
        return "boolean"
    if isinstance(default, int | float):
        return "number"
    words = name.lower().replace("-", "_").split("_")
    if {"path", "dir", "directory", "file", "folder", "filename"} & set(words):
        return "path"
    return "string"
