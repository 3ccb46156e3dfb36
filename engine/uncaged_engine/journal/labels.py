"""Labels of effects: a few words about each, the same wherever a person follows a thread."""

from __future__ import annotations

from collections.abc import Mapping

from .lines import DIGESTED

TARGETS = ("name", "url", "path", "command", "query", "prompt")
"""Keys of an effect's body that identify it best for a person, in order of preference."""


def effect_label(kind: str, body: object) -> str:
    """Return a few words for an effect: a role's name, or the kind with its target."""
    if not isinstance(body, Mapping):
        return kind
    if kind in ("role", "output"):
        return str(body.get("name") or body.get("role") or kind)
    target = next((str(body[key]) for key in TARGETS if isinstance(body.get(key), str)), "")
    words = " ".join(word for word in (kind, str(body.get("method", "")), target) if word)
    return f"{body['label']}: {words}" if isinstance(body.get("label"), str) else words


def intended(intent: object) -> tuple[str, object]:
    """Return kind and body of an intent; body None where the journal keeps only a digest of a
    refused effect.
    """
    if isinstance(intent, Mapping) and set(intent) == DIGESTED:
        return str(intent["kind"]), None
    if isinstance(intent, Mapping) and intent:
        kind, body = next(iter(intent.items()))
        return str(kind), body
    return "effect", None
