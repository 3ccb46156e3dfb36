"""Child threads of an open effect that were removed: what they did is not known, so the effect's rule is `ask`.

A child's journal says whether it was started. Without a journal, its marker (`ID.removed`) says that there was one.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_effects.all import checked
from uncaged_effects.flow import derived_id

from ..door.effects import Handler, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEffect:
    """Where an effect is open. done: its parts that have an outcome already, by index."""

    store: Store
    thread: ThreadId
    seq: int
    intended_ms: int
    done: Container[int] = ()

    def rule(self, handler: Handler, body: object, bundle: Bundle, *, part: int | None = None) -> Rule:
        """What the handler of the effect, or of a part of it, declares; `ask` if it is a flow whose thread was removed."""
        key = f"{self.thread}/{self.seq}{'' if part is None else f'.{part}'}"
        if handler.kind == "flow" and self.store.was_removed(derived_id(key, self.intended_ms)):
            return "ask"
        return handler.rule(body, bundle)

    def children(self, kind: str, body: object) -> Iterator[ThreadId]:
        """The ids of the threads that the effect starts, in order, whether they were started or not."""
        place = f"{self.thread}/{self.seq}"
        if kind == "flow":
            yield derived_id(place, self.intended_ms)
        elif kind == "all" and not isinstance(parts := checked(body), str):
            for index, (part, _) in enumerate(parts):
                if part == "flow" and index not in self.done:
                    yield derived_id(f"{place}.{index}", self.intended_ms)
