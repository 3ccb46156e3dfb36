"""Outcomes of an effect: answer, failure, void, wait.

An answer and a failure reach the bundle. A void and a wait never do: the intent stays open until
the effect is performed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from uncaged_bundles.records import dataclass, field

__all__ = ["Answer", "Failure", "Outcome", "TryLater", "Void", "VoidWord", "Wait"]

VoidWord = Literal["killed", "limit", "environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLater:
    """Reason to send a request again. after_s: the server's `Retry-After`, 0 without one."""

    after_s: float
    reason: str


# not frozen: one is made for every effect, and freezing triples what that costs
@dataclass(slots=True, kw_only=True)
class Answer:
    """Outcome of an effect that was performed.

    fields: the step line's own keys, JSON values only: ``{"outcome": value}`` for most kinds,
    ``{"role", "content", "meta", "by", …}`` for a role. later: set if the effect's ``retry`` covers
    this answer.
    """

    fields: Mapping[str, object]
    later: TryLater | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Outcome of an effect that failed, thrown into the bundle, which may catch it.

    error: at least ``{"kind": word, "message": sentence}``; JSON values only.
    """

    error: Mapping[str, object]

    @property
    def fields(self) -> Mapping[str, object]:
        """Return the step line's own keys, as an answer has them."""
        return {"error": self.error}

    @classmethod
    def of(cls, kind: str, message: str, **more: object) -> Failure:
        return cls(error={"kind": kind, "message": message, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """Outcome that the bundle does not see: a kill, a limit, or a lack of the environment ended the
    effect.

    begun: False only if nothing outside can have seen the effect. parts: the parts of an ``all``
    that had begun and have no outcome. doubt: of the word ``environment``: a person decides how to
    go on, although the effect had not begun; the thread is ``unknown``.
    """

    word: VoidWord
    message: str
    more: Mapping[str, object] = field(default_factory=dict)
    begun: bool = True
    parts: tuple[int, ...] = ()
    doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Outcome of an effect that needs a person's answer; the worker may exit.

    details: the question as JSON values, shown to the person.
    """

    details: Mapping[str, object]


Outcome = Answer | Failure | Void | Wait
