"""Readers of entities: the values of captured texts by type. Types of packs come after the built-in
ones; a reader imports its library when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..grammar.entities import ENTITY_READERS
from .types import EntityType

Reader = Callable[[str], object]


class Readers(Mapping[str, Reader]):
    """The readers for one sentence. named: types of the conversation's memory."""

    def __init__(
        self, declared: Mapping[str, EntityType], named: Mapping[str, Reader] | None = None
    ) -> None:
        self._declared = declared
        self._named = named or {}

    def __getitem__(self, name: str) -> Reader:
        if name in self._named:
            return self._named[name]
        if name in ENTITY_READERS:
            return ENTITY_READERS[name]
        return self._declared[name].reader()

    def __iter__(self) -> Iterator[str]:
        yield from {**ENTITY_READERS, **self._named, **self._declared}

    def __len__(self) -> int:
        return len(set(self))
