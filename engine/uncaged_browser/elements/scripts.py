"""Scripts for pages, with the text that they share in its place."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .finding import NEAR

__all__ = ["page_script", "script_in"]

NAMING = Path(__file__).with_name("naming.js")
PLACE = "/* NAMING */"


def page_script(path: Path) -> str:
    """Return the script in a file, with the functions that name elements."""
    naming = NAMING.read_text("utf-8").replace("= NEAR;", f"= {NEAR};")
    return path.read_text("utf-8").replace(PLACE, naming)


@cache
def script_in(name: str) -> str:
    """Return the script of a file in this directory."""
    return page_script(Path(__file__).with_name(name))
