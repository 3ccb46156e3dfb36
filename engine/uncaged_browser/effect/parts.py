"""Parts of the browser's use by flows, each of which a person switches in config.yaml."""

from __future__ import annotations

from typing import get_args

from uncaged_engine.services.settings import BrowserPart, BrowserSettings

from ..lookup.requests import FindPage, SearchWeb
from ..operations import Operation, ReadActions
from ..questions.requests import PageQuestion
from .limits import BrowserLimits

__all__ = ["PARTS", "part_that_is_off"]

PARTS: tuple[BrowserPart, ...] = get_args(BrowserPart)
"""All parts."""


def part_that_is_off(operation: Operation, limits: BrowserLimits, settings: BrowserSettings) -> str:
    """Return the refusal of an operation whose part is switched off; an empty text if none is."""
    wanted: list[BrowserPart] = ["browse" if limits.profile == "kept" else "flows"]
    if isinstance(operation, FindPage | SearchWeb | PageQuestion):
        wanted.append("lookup")
    if isinstance(operation, ReadActions):
        wanted.append("discovery")
    for part in wanted:
        if part not in settings.parts:
            return (
                f"the part {part!r} of the browser is switched off; switch it on:"
                f" uncaged-workflow browser parts on {part}"
            )
    return ""
