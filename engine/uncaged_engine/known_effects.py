"""The kinds of effect that a policy may name are ours, and those of other distributions, which are looked for only when one is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.policy import KNOWN_EFFECTS


class KnownEffects(Mapping[str, frozenset[str]]):
    """Effect kind to the limit keys that a policy may set for it."""

    def __getitem__(self, kind: str) -> frozenset[str]:
        if kind in KNOWN_EFFECTS:
            return KNOWN_EFFECTS[kind]
        from . import effect_kinds as handlers

        try:
            return handlers.handler_for(kind).limits
        except NotFoundError as exc:
            raise KeyError(kind) from exc

    def __iter__(self) -> Iterator[str]:
        from . import effect_kinds as handlers

        return iter(sorted({*KNOWN_EFFECTS, *handlers.kinds()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


KNOWN = KnownEffects()
