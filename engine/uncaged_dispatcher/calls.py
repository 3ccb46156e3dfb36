"""Calls of flows and the possible results of interpreting a sentence: an interpretation, a
question, or a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass, field

Tier = Literal["grammar", "construction", "model", "verb"]
"""The part of the dispatcher that understood a sentence; a hit of the first two needs no model."""


REASON = "reason"
"""The flow that works on a sentence that no flow reads, with all flows as tools."""
WEB_GOAL = "web-goal"
"""The flow that reaches a goal on web pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A flow to run with its parameters. The parameters are as the sentence has them; the engine
    checks them again when the thread starts.
    """

    flow: str
    params: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> Call:
        """Check ``{"flow": NAME, "params"?: {…}}``.

        Raises:
            UsageError: the value has another form.
        """
        match value:
            case {"flow": str(flow), **rest} if flow and not rest.keys() - {"params"}:
                params = rest.get("params")
                if params is None or isinstance(params, Mapping):
                    return cls(flow=flow, params=dict(params or {}))
        raise UsageError(f'a call is {{"flow": NAME, "params": {{…}}}}, not {str(value)[:200]!r}')

    def document(self) -> dict[str, object]:
        """Return the call as JSON."""
        return {"flow": self.flow, "params": dict(self.params)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """A sentence as calls.

    by: the tier. rule: the name of the rule, construction or verb that read the sentence. pack: the
    pack of the first call's flow; empty for a flow without one. confirm: flows among the calls that
    are marked in the registry, so that a person must agree before they run. remembered: the person
    chose this reading earlier among several.
    """

    calls: tuple[Call, ...]
    by: Tier
    rule: str
    pack: str = ""
    elapsed_ms: float = 0.0
    confirm: tuple[str, ...] = ()
    remembered: bool = False

    def document(self) -> dict[str, object]:
        """Return the interpretation as JSON."""
        return {
            "calls": [call.document() for call in self.calls],
            "by": self.by,
            "rule": self.rule,
            "pack": self.pack,
            "elapsedMs": round(self.elapsed_ms, 3),
            "confirm": list(self.confirm),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One answer to a question. id: what the answer names; label: what a person reads."""

    id: str
    label: str
    interpretation: Interpretation


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A sentence with several readings, of which a person must choose one.

    kind: ``collision`` for readings of several rules, ``entity`` for several things that one name
    in the sentence may mean, ``clarification`` for a model's question, whose choices have no calls
    yet.
    """

    kind: Literal["collision", "entity", "clarification"]
    sentence: str
    text: str
    choices: tuple[Offer, ...]
    elapsed_ms: float = 0.0

    def choice(self, answer: str) -> Offer:
        """Return the choice that *answer* names, by its id.

        Raises:
            UsageError: none has that id.
        """
        for choice in self.choices:
            if choice.id == answer.strip():
                return choice
        known = ", ".join(choice.id for choice in self.choices)
        raise UsageError(f"{answer[:80]!r} is none of the choices: {known}")

    def document(self) -> dict[str, object]:
        """Return the question as JSON."""
        return {
            "kind": self.kind,
            "question": self.text,
            "choices": [
                {
                    "id": choice.id,
                    "label": choice.label,
                    "calls": [call.document() for call in choice.interpretation.calls],
                }
                for choice in self.choices
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A flow whose patterns are close to a sentence, and some of these patterns."""

    flow: str
    patterns: tuple[str, ...]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Help for a person whose sentence no rule read.

    nearest: the three nearest flows. corrected: the sentence with a misspelt word replaced, which
    some flow reads; a person must accept it.
    """

    nearest: tuple[Nearest, ...] = ()
    corrected: str | None = None


NO_ADVICE = Advice()


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A sentence that no rule read.

    why: one sentence for a person. refused: for each reading that was refused, the reason. enable:
    the command that enables a flow or pack which would read the sentence. advise: computes the
    help, which takes longer than the look-up; see `advice`.
    """

    sentence: str
    why: str
    refused: tuple[str, ...] = ()
    enable: str | None = None
    advise: Callable[[], Advice] = field(default=lambda: NO_ADVICE, compare=False)
    elapsed_ms: float = 0.0

    @property
    def nearest(self) -> tuple[Nearest, ...]:
        """Return the three nearest flows with their patterns."""
        return self.advise().nearest

    @property
    def corrected(self) -> str | None:
        """Return the sentence with a misspelt word replaced, or None."""
        return self.advise().corrected

    def document(self) -> dict[str, object]:
        """Return the miss as JSON."""
        return {
            "why": self.why,
            "nearest": [
                {"flow": near.flow, "patterns": list(near.patterns)} for near in self.nearest
            ],
            "refused": list(self.refused),
            "enable": self.enable,
            "corrected": self.corrected,
        }
