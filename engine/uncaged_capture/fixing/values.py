"""Values of a failed run that change with the flow: those of changed defaults and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.validation.validate import Bundle
from uncaged_bundles.values import convert

__all__ = ["changed_values"]


def changed_values(params: Mapping[str, Any], before: Bundle, after: Bundle) -> dict[str, Any]:
    """Return the values that differ if the same run is started with the changed flow, by name.

    Args:
        params: those of the failed run, defaults included.
    """
    old, new = (_properties(one) for one in (before, after))
    changed: dict[str, Any] = {}
    for name, value in params.items():
        former, present = old.get(name, {}), new.get(name, {})
        if "default" in present and value == former.get("default") != present["default"]:
            changed[name] = present["default"]
        elif former.get("type") != present.get("type") and "type" in present:
            other = convert(value, str(present["type"]))
            changed |= {name: other} if other != value else {}
    return changed


def _properties(bundle: Bundle) -> Mapping[str, Any]:
    return shapes.mapping(bundle.descriptor.parameters.get("properties", {}), ("properties",))
