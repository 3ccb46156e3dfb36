"""Operations for the person at the browser: reading aloud, the agent's status, its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from uncaged_bundles import shapes

from .operation import Frames, MaybeTarget, Operation

__all__ = ["OpenSettings", "ShowStatus", "Speak", "StopSpeaking"]

MAX_STATUS_CHARACTERS = 200


def _status(value: object, path: shapes.Path) -> str:
    if len(text := shapes.text(value, path)) > MAX_STATUS_CHARACTERS:
        raise shapes.ShapeError(path, f"has at most {MAX_STATUS_CHARACTERS} characters")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Speak(Operation):
    """Begin to read the visible text of the page, or of one element, aloud. It goes on until its
    end, until the page is left, or until `StopSpeaking`.
    """

    do: ClassVar[str] = "speak"
    target: MaybeTarget = None
    frame: Frames = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSpeaking(Operation):
    """Stop reading aloud, in one tab or in all."""

    do: ClassVar[str] = "stop_speaking"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStatus(Operation):
    """Show what the agent does on the extension's button. text: its title; empty for none. busy:
    whether the badge says that it works.
    """

    do: ClassVar[str] = "status"
    text: Annotated[str, _status] = ""
    busy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSettings(Operation):
    """Open the extension's settings in a tab for the person."""

    do: ClassVar[str] = "settings"
