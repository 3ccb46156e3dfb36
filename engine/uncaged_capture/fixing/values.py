"""Values of a failed run that are defaults, and those that change with the flow: of changed
defaults and types.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.validation.validate import Bundle
from uncaged_bundles.values import convert

__all__ = ["absolute", "changed_values", "is_default", "lost_values"]


def is_default(value: object, default: object, directory: Path) -> bool:
    """Tell whether a run's value is a parameter's default, which is made absolute if it is a path.

    Args:
        directory: that of the caller.
    """
    if value == default:
        return True
    if not isinstance(value, str) or not isinstance(default, str) or not default:
        return False
    return value == absolute(default, directory)


def absolute(path: str, directory: Path) -> str:
    """Return the absolute form of a path that a person wrote in a directory."""
    written = Path(path)
    with suppress(RuntimeError):  # ~ of a user that there is not
        written = written.expanduser()
    return os.path.normpath(directory / written)


def changed_values(
    params: Mapping[str, Any], before: Bundle, after: Bundle, directory: Path
) -> dict[str, Any]:
    """Return the values that differ if the same run is started with the changed flow, by name.

    Args:
        params: those of the failed run, defaults included. directory: that of the caller.
    """
    old, new = (_properties(one) for one in (before, after))
    changed: dict[str, Any] = {}
    for name, value in params.items():
        former, present = old.get(name, {}), new.get(name, {})
        default = former.get("default")
        is_other = "default" in present and default != present["default"]
        if is_other and is_default(value, default, directory):
            changed[name] = present["default"]
        elif former.get("type") != present.get("type") and "type" in present:
            other = convert(value, str(present["type"]))
            if present["type"] == "string" and not isinstance(value, str):
                other = json.dumps(value, ensure_ascii=False)
            changed |= {name: other} if other != value else {}
    return changed


def lost_values(params: Mapping[str, Any], before: Bundle, after: Bundle) -> tuple[str, ...]:
    """Return the names of fractions that are texts in the changed flow. The journal has ``1.5`` for
    ``1.50``.
    """
    old, new = (_properties(one) for one in (before, after))
    return tuple(
        name
        for name, value in params.items()
        if isinstance(value, float)
        and old.get(name, {}).get("type") != "string"
        and new.get(name, {}).get("type") == "string"
    )


def _properties(bundle: Bundle) -> Mapping[str, Any]:
    return shapes.mapping(bundle.descriptor.parameters.get("properties", {}), ("properties",))
