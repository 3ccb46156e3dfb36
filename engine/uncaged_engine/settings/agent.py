"""Checks of one agent's settings, key by key. An error names the nearest known key."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from uncaged_bundles.errors import UsageError


def known(settings: Mapping[str, object], *keys: str, kind: str) -> None:
    """Refuse a key that agents of this kind do not have."""
    for key in settings:
        if key not in keys:
            near = get_close_matches(key, keys, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            hint += f"known: {', '.join(keys) or 'none'}"
            raise UsageError(f"an agent that uses {kind!r} has no setting {key!r}; {hint}")


def text(settings: Mapping[str, object], key: str, *, kind: str) -> str:
    """Return a text that is required and not empty."""
    value = settings.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"an agent that uses {kind!r} needs {key}: text, not {value!r}")
    return value


def seconds(settings: Mapping[str, object], key: str, default: float, *, kind: str) -> float:
    """Return a time above 0."""
    value = settings.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UsageError(
            f"an agent that uses {kind!r} needs {key} in seconds above 0, not {value!r}"
        )
    return value


def texts(settings: Mapping[str, object], key: str, *, kind: str) -> tuple[str, ...]:
    """Return a list of texts that is required and not empty."""
    value = settings.get(key)
    if (
        not isinstance(value, list | tuple)
        or not value
        or not all(isinstance(item, str) for item in value)
    ):
        raise UsageError(
            f"an agent that uses {kind!r} needs {key}: a list of texts such as [my-agent, --fast], not {value!r}"
        )
    return tuple(value)


def variables(settings: Mapping[str, object], key: str, *, kind: str) -> dict[str, str]:
    """Return a mapping of variables to texts; empty by default."""
    value = settings.get(key, {})
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and isinstance(item, str) for name, item in value.items()
    ):
        raise UsageError(
            f"an agent that uses {kind!r} needs {key}: a mapping of variables to texts, not {value!r}"
        )
    return dict(value)
