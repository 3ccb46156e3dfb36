"""Effect kinds by name: handler and preparation of each, and the limits that a policy may set.

The kinds of contract 1 are in a table of the bundles' package; those of other distributions are
looked up when a policy or a bundle names one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError
from uncaged_bundles.limits import KNOWN_EFFECTS, Limits

from . import plugins
from .door.effects import Handler, handled

if TYPE_CHECKING:
    from .door.preparing import Preparation

__all__ = [
    "KNOWN",
    "handler_for",
    "kinds",
    "outcome_schema",
    "preparation_of",
    "preparations_of",
]


@cache
def handler_for(kind: str) -> Handler:
    """Return the one handler of *kind*; NotFoundError has the nearest kinds."""
    return cast("type[Handler]", plugins.find(kind, group=plugins.EFFECTS))()


def outcome_schema(kind: str, body: object) -> Mapping[str, object]:
    """Return the JSON Schema of what performing an effect answers; empty for a kind that does not
    say.
    """
    return handler_for(kind).outcome_schema(handled(body))


def kinds() -> tuple[str, ...]:
    """Return all kinds that can be performed here."""
    return plugins.names(group=plugins.EFFECTS)


class KnownEffects(Mapping[str, type[Limits]]):
    """Limits by effect kind."""

    def __getitem__(self, kind: str) -> type[Limits]:
        if kind in KNOWN_EFFECTS:
            return KNOWN_EFFECTS[kind]
        try:
            limits: object = handler_for(kind).limits
        except NotFoundError as exc:
            raise KeyError(kind) from exc
        if not (isinstance(limits, type) and issubclass(limits, Limits)):
            raise EnvironmentLacks(
                f"the handler of the effect {kind!r} has the limits {limits!r}, which are no subclass of uncaged_bundles.limits.Limits",
                remedy="update the package that brings it",
            )
        return limits

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*KNOWN_EFFECTS, *kinds()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


KNOWN = KnownEffects()


def preparations_of(kinds: Iterable[str]) -> Iterator[Preparation]:
    """Yield the preparations of those effect *kinds* that have one."""
    for kind in kinds:
        is_ours_alone = kind in plugins.ours(plugins.EFFECTS) and kind not in plugins.ours(
            plugins.PREPARATIONS
        )
        if not is_ours_alone and plugins.is_known(kind, group=plugins.PREPARATIONS):
            yield preparation_of(kind)


def preparation_of(kind: str) -> Preparation:
    """Return the preparation of an effect kind; EnvironmentLacks if it cannot be loaded."""
    return cast("type[Preparation]", plugins.find(kind, group=plugins.PREPARATIONS))()
