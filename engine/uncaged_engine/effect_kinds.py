"""Effect kinds by name: the handler of each, and the keys that a policy may set for it.

The kinds of contract 1 are in the core's own table; those of other distributions are looked up when a policy or a bundle names one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.policy import KNOWN_EFFECTS

from . import plugins
from .door.effects import Handler

__all__ = ["KNOWN", "handler_for", "kinds", "outcome_schema"]


@cache
def handler_for(kind: str) -> Handler:
    """Return the one handler of *kind*; NotFoundError has the nearest kinds."""
    return cast("type[Handler]", plugins.find(kind, group=plugins.EFFECTS))()


def outcome_schema(kind: str, body: object) -> Mapping[str, object]:
    """Return the JSON Schema of what performing an effect answers; empty for a kind that does not say."""
    return handler_for(kind).outcome_schema(body)


def kinds() -> tuple[str, ...]:
    """Return all kinds that can be performed here."""
    return plugins.names(group=plugins.EFFECTS)


class KnownEffects(Mapping[str, frozenset[str]]):
    """Effect kind to the keys that a policy may set for it."""

    def __getitem__(self, kind: str) -> frozenset[str]:
        if kind in KNOWN_EFFECTS:
            return KNOWN_EFFECTS[kind]
        try:
            return handler_for(kind).limits
        except NotFoundError as exc:
            raise KeyError(kind) from exc

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*KNOWN_EFFECTS, *kinds()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


KNOWN = KnownEffects()
