"""Effects that may have been performed without an outcome, and whose rule is ``ask``: only a person
can decide about them.

The journal shows which effect was begun (`Pending.doubtful`), its handler declares the rule. Parts
of an ``all`` count one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Self

from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.policy import refusal
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..effect_kinds import KNOWN, handler_for
from ..journal.blobs import Blobs
from ..journal.codec import decode
from ..journal.labels import effect_label
from ..journal.recover import History, Pending
from .children import OpenEffect, parts_of
from .reason import doubt_about
from .states import NEXT_STEP, State


def undecided(history: History, store: Store, bundle: BundleHash, blobs: Blobs) -> tuple[str, ...]:
    """Name the effects about which a person has to decide before the thread goes on, as
    ``step 2 (http POST …)``; mostly none.

    An effect of a kind that this machine cannot perform is not named: it is not performed either,
    until it is.
    """
    pending = history.pending
    if pending is None or not pending.doubtful:
        return ()
    try:
        [(kind, body)] = effect_of(pending, blobs).items()
        found = store.bundle_path(bundle).stat()
        loaded = _bundle(store, bundle, (found.st_ino, found.st_size, found.st_mtime_ns))
        return tuple(
            Doubt.about(pending, store, ThreadId(str(history.start["threadId"]))).names(
                kind, body, loaded
            )
        )
    except (AttributeError, ValueError, OSError, UncagedError):
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """An effect that an earlier owner of a thread left without an outcome. place: gives the rule
    where a child was removed.
    """

    pending: Pending
    place: OpenEffect

    @classmethod
    def about(cls, pending: Pending, store: Store, thread: ThreadId) -> Self:
        place = OpenEffect(
            store=store,
            thread=thread,
            seq=pending.seq,
            intended_ms=pending.intended_ms,
            done=pending.finished_parts(),
        )
        return cls(pending=pending, place=place)

    @property
    def is_redone(self) -> bool:
        """Whether a person decided to redo what the effect itself had asked about."""
        return self.pending.asked and self.pending.decided == "redo"

    def names(self, kind: str, body: object, bundle: Bundle) -> Iterator[str]:
        """Name the effect, or the parts of it, that may have been performed and have the rule
        ``ask``.

        Raises:
            NotFoundError: nothing here performs effects of that kind.
        """
        policy = bundle.descriptor.policy
        if not self.pending.doubtful or refusal(policy, kind) is not None:
            return  # what the policy refuses was never performed
        for part, inner_kind, inner in self._doubtful(kind, body):
            if (
                refusal(policy, inner_kind) is None
                and self.place.rule(handler_for(inner_kind), inner, bundle, part=part) == "ask"
            ):
                where = f"step {self.pending.seq}{'' if part is None else f', part {part}'}"
                yield f"{where} ({effect_label(inner_kind, inner)})"

    def _doubtful(self, kind: str, body: object) -> Iterator[tuple[int | None, str, object]]:
        """Yield part, kind and body of each effect that may have been performed; part None: the
        effect itself.
        """
        parts = parts_of(kind, body)
        if parts is None:
            yield None, kind, body
            return
        among = self.pending.doubtful_parts
        for index, (inner_kind, inner) in enumerate(parts):
            if index not in self.place.done and (among is None or index in among):
                yield index, inner_kind, inner


def require_decision(
    thread: str, state: State, names: tuple[str, ...], resume: Mapping[str, object]
) -> None:
    """Refuse a resume that says neither redo nor skip where an effect may have been performed.

    Args:
        names: from `undecided`. resume: the fields of the resume record.
    Raises:
        RefusedError: it names the effects and both ways on.
    """
    if (names or state == "unknown") and not (resume.get("redo") or resume.get("skip")):
        doubt = f": {doubt_about(names)}" if names else ""
        raise RefusedError(f"thread {thread} is {state}{doubt}; {NEXT_STEP['unknown']}")


def effect_of(pending: Pending, blobs: Blobs) -> Mapping[str, object]:
    """Return the effect as a mapping, read from its blob if it is kept in one."""
    effect = decode(
        pending.effect if pending.effect is not None else blobs.get(pending.blob_name())
    )
    if not isinstance(effect, dict):
        raise ValueError(f"step {pending.seq}: its intent is no effect")
    return effect


@lru_cache(maxsize=16)
def _bundle(store: Store, bundle: BundleHash, _file: tuple[int, int, int]) -> Bundle:
    """Load a bundle, once for all threads of a listing; *_file* is part of the key, so that a
    changed file is loaded again.
    """
    return store.load_bundle(bundle, KNOWN)
