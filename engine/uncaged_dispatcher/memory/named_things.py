"""Readers of captured names by the types in a conversation's memory, exact or nearly so.

The memory is opened when a sentence captures a type that is not built in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from uncaged_engine.services.canonical import encode

from ..grammar.entities import ENTITY_READERS
from ..grammar.syntax import UNDEFINED
from .entity_memory import EntityMemory, RememberedEntity

CUTOFF = 80.0
"""Least likeness of a name, of 100, at which it may be meant."""
MOST_MEANT = 9


class NamedThings(Mapping[str, Callable[[str], object]]):
    """Readers for one sentence. ambiguous: for a value that was returned, all things that its name
    may mean.
    """

    def __init__(self, memory: EntityMemory) -> None:
        self._memory = memory
        self._types: frozenset[str] | None = None
        self.ambiguous: dict[str, list[RememberedEntity]] = {}

    def __getitem__(self, type: str) -> Callable[[str], object]:
        if type not in self:
            raise KeyError(type)
        return lambda text: self._read(type, text)

    def __contains__(self, type: object) -> bool:
        return type not in ENTITY_READERS and type in self._known()

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def _known(self) -> frozenset[str]:
        if self._types is None:
            self._types = frozenset(self._memory.types())
        return self._types

    def _read(self, type: str, text: str) -> object:
        found = self._memory.named(text, type) or similar_things(self._memory, text, type)
        if not found:
            return UNDEFINED
        value = meaning(found[0])
        if len(found) > 1:
            self.ambiguous[encode(value)] = found
        return value


def similar_things(
    memory: EntityMemory, text: str, type: str | None = None
) -> list[RememberedEntity]:
    """Return the things, all or those of a type, whose names are like *text*, the most alike
    first.
    """
    from rapidfuzz import fuzz, process, utils  # 10 ms, for a name that is not exact

    names = process.extract(
        text,
        memory.names(type),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        score_cutoff=CUTOFF,
        limit=MOST_MEANT,
    )
    return [one for name, _, _ in names for one in memory.named(name, type)][:MOST_MEANT]


def meaning(entity: RememberedEntity) -> object:
    """Return what a call uses for a thing: its value, or its name if it has none."""
    return entity.name if entity.value is None else entity.value
