"""One guessed parameter, in whatever language it was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A parameter that a script seems to take.

    flag: it stands behind this word on the command line. switch: the flag alone says yes. place:
    its place there, from 1, without a flag.
    Neither: it is read from the environment.
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
        """The parameter as a recipe has it."""
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
    """What a parameter seems to be, by its default and its name."""
    if isinstance(default, bool):
        return "boolean"
    if isinstance(default, int | float):
        return "number"
    words = name.lower().replace("-", "_").split("_")
    if {"path", "dir", "directory", "file", "folder", "filename"} & set(words):
        return "path"
    return "string"
