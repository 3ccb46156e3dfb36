"""Paths in parameters and policies: ``~`` and variables are expanded, relative paths are
resolved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$(?:env:)?(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def expanded(text: str, environment: Mapping[str, str], directory: Path) -> Path:
    """Return an absolute path: ``~`` and variables expanded, relative to *directory*.

    Raises:
        ValueError: a variable is not set, or may not be used.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environment:
            raise ValueError(
                f"the variable {name} is not set, or not carried to flows (config.yaml: environment)"
            )
        return environment[name]

    if "\0" in text or not text.strip():
        raise ValueError("it is no path")
    if text == "~" or text.startswith("~/"):
        text = "$HOME" + text[1:]
    return directory / _VARIABLE.sub(value_of, text)
