"""What performing an effect can come to is exactly one of four things, and each says who learns of it.

An answer and a failure reach the bundle. A void and a wait never do: the intent stays the bundle's last word until it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from uncaged_bundles.records import dataclass, field

VoidWord = Literal["killed", "limit", "environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLater:
    """The other side could not serve a request that may be sent again. after_s: the earliest time that it names, 0 if it names none."""

    after_s: float
    reason: str


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every effect, and freezing triples what that costs
class Answer:
    """The effect was performed.

    fields: the step line's own keys, JSON values only: ``{"outcome": value}`` for most kinds,
    ``{"role", "content", "meta", "by", …}`` for a role. later: set if the effect's ``retry`` covers this answer.
    """

    fields: Mapping[str, object]
    later: TryLater | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The effect failed; the bundle gets this thrown in and may catch it.

    error: at least ``{"kind": word, "message": sentence}``; JSON values only.
    """

    error: Mapping[str, object]

    @property
    def fields(self) -> Mapping[str, object]:
        """The step line's own keys, as an answer has them."""
        return {"error": self.error}

    @classmethod
    def of(cls, kind: str, message: str, **more: object) -> Failure:
        return cls(error={"kind": kind, "message": message, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """The effect came to nothing that the bundle may see: it was killed, a limit cut it off, or the machine lacks something.

    begun: False only if nothing outside can have seen the effect. parts: the parts of an ``all`` that had begun and have no outcome.
    """

    word: VoidWord
    message: str
    more: Mapping[str, object] = field(default_factory=dict)
    begun: bool = True
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Somebody outside has to answer first; the worker may leave.

    details: JSON values that say what is asked (shown to the person).
    """

    details: Mapping[str, object]


Outcome = Answer | Failure | Void | Wait
