"""Child threads of an open effect that were removed: what they did is not known, so the effect's
rule is `ask`.

A child's journal says whether it was started. Without a journal, its marker (`ID.removed`) says
that there was one.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..door.effects import Handler, Rule, handled
from ..effect_kinds import handler_for
from ..journal.labels import intended


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEffect:
    """Where an effect is open. done: its parts that have an outcome already, by index."""

    store: Store
    thread: ThreadId
    seq: int
    intended_ms: int
    done: Container[int] = ()

    def rule(
        self, handler: Handler, body: object, bundle: Bundle, *, part: int | None = None
    ) -> Rule:
        """Return what the handler of the effect, or of a part of it, declares; `ask` if it is a
        flow whose thread was removed.
        """
        key = f"{self.thread}/{self.seq}{'' if part is None else f'.{part}'}"
        child = handler.child(key, self.intended_ms)
        if child is not None and self.store.was_removed(child):
            return "ask"
        return handler.rule(handled(body), bundle)

    def children(self, kind: str, body: object) -> Iterator[ThreadId]:
        """Yield the ids of the threads that the effect starts, in order, whether they were started
        or not.
        """
        place = f"{self.thread}/{self.seq}"
        inner = [
            (f"{place}.{index}", part)
            for index, (part, _) in enumerate(parts_of(kind, body) or ())
            if index not in self.done
        ]
        for key, one in [(place, kind), *inner]:
            # nothing here performs effects of that kind, so it starts no thread here
            with suppress(NotFoundError):
                child = handler_for(one).child(key, self.intended_ms)
                if child is not None:
                    yield child


def open_children(
    store: Store, thread: ThreadId, records: Sequence[Mapping[str, Any]]
) -> Iterator[ThreadId]:
    """Yield the ids of the threads that a thread's open effect starts, whether they were started or
    not. records: those of its journal.
    """
    steps = (one for one in reversed(records) if "seq" in one and "control" not in one)
    last: Mapping[str, Any] = next((one for one in steps if "attempt" not in one), {})
    if "intent" in last:
        place = OpenEffect(
            store=store, thread=thread, seq=last["seq"], intended_ms=last["timestamp"]
        )
        yield from place.children(*intended(last["intent"]))


def parts_of(kind: str, body: object) -> Sequence[tuple[str, object]] | None:
    """Return the effects inside a composite one; None for an effect of another kind, or of one that
    is not known here.
    """
    try:
        handler = handler_for(kind)
    except NotFoundError:
        return None
    return handler.parts(handled(body)) if handler.is_composite else None
