"""Directory of the extension, as a browser loads it unpacked."""

from __future__ import annotations

from pathlib import Path

__all__ = ["EXTENSION"]

EXTENSION = Path(__file__).parents[1] / "extension"
