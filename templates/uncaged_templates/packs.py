"""Pack files that this distribution ships, in ``packs``: one file, one pack."""

from __future__ import annotations

from pathlib import Path

_DIRECTORY = Path(__file__).parent / "packs"

BROWSER = _DIRECTORY / "browser.yaml"
FILES = _DIRECTORY / "files.yaml"
GIT = _DIRECTORY / "git.yaml"
NOTES = _DIRECTORY / "notes.yaml"
PRODUCT = _DIRECTORY / "product.yaml"
SYSTEM = _DIRECTORY / "system.yaml"
WEB = _DIRECTORY / "web.yaml"
