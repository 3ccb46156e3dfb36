"""Choice of the element that takes the place of one that is not found. It is made from facts alone,
and refuses rather than guesses.

An element must be of the same kind, promise the same action, lead to no other host, and be like the
sought one by far more than any other element, and than it is like any other target of the flow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from uncaged_bundles.records import dataclass

from ..elements.facts import ElementFacts
from .lexicon import GRAVE, actions_of
from .likeness import nearest_likeness, same_text
from .sought import CHECKED, CLICKED, SoughtElement

__all__ = ["Chosen", "NotChosen", "choose"]

LEAST = 0.66
"""Least score of an element that is taken."""
MARGIN = 0.1
"""Least distance to the next best element."""
LEAST_NAME = 0.62
"""Least likeness of the names; below it only equal attributes count."""
OWN = 0.02
"""An element is left to another target of the flow whose name it has by so much more."""
DECISIVE = 4.0
WEIGHTS: Mapping[str, float] = {
    "name": 0.5,
    "attributes": 0.2,
    "around": 0.22,
    "kind": 0.1,
    "place": 0.06,
}
ATTRIBUTES = ("test_id", "href", "field", "id", "placeholder", "title", "autocomplete")
WEAK = frozenset({"title", "autocomplete"})
FAR_PIXELS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The element with this number. why: parts of its score, for people."""

    number: int
    facts: ElementFacts
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChosen:
    """No element is taken. reason: for people. candidate: the best one that was refused."""

    reason: str
    candidate: ElementFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    number: int
    facts: ElementFacts
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        """Return the weighted mean of the parts."""
        total = sum(WEIGHTS[key] for key in self.parts)
        return sum(WEIGHTS[key] * value for key, value in self.parts.items()) / total


def choose(
    sought: SoughtElement, elements: Sequence[ElementFacts], others: Sequence[SoughtElement] = ()
) -> Chosen | NotChosen:
    """Return the element that takes the place of the sought one.

    Args:
        elements: the operable elements of the page, in order. others: the other targets of the
            flow.
    """
    fitting = [(number, one) for number, one in enumerate(elements) if sought.fits(one)]
    if not fitting:
        return NotChosen(reason="no operable element of this kind is on the page")
    weights = _text_weights([one for _, one in fitting])
    rated = [
        Rated(number=number, facts=one, parts=_parts(sought, one, weights))
        for number, one in fitting
    ]
    rated.sort(key=lambda one: -one.score)
    best, *rest = rated
    refusal = _refusal(sought, best, others)
    if refusal is not None:
        return NotChosen(reason=refusal, candidate=best.facts)
    # an element that may not be taken is a rival all the same: the two are hard to tell apart
    if rest and best.score - rest[0].score < MARGIN:
        return NotChosen(
            reason=f"two elements are alike: {best.facts} and {rest[0].facts}", candidate=best.facts
        )
    why = tuple(f"{key} {value:.2f}" for key, value in best.parts.items())
    return Chosen(number=best.number, facts=best.facts, score=round(best.score, 3), why=why)


def _parts(
    sought: SoughtElement, one: ElementFacts, weights: Mapping[str, float]
) -> dict[str, float]:
    known = sought.facts
    parts: dict[str, float] = {}
    if known.names:
        parts["name"] = nearest_likeness(known.names, one.names)
    equal = [
        key
        for key in ATTRIBUTES
        if getattr(known, key) and getattr(known, key) == getattr(one, key)
    ]
    if known.options and list(known.options) == list(one.options):
        equal.append("options")
    if equal:
        parts["attributes"] = 0.6 if WEAK.issuperset(equal) else 1.0
    around = _around(sought, one, weights)
    if around is not None:
        parts["around"] = around
    same_type = known.type in ("", one.type)
    parts["kind"] = (0.6 if known.role == one.role else 0.0) + (0.4 if same_type else 0.0)
    if len(known.place) == 4 and len(one.place) == 4:
        distance = math.dist(known.place[:2], one.place[:2])
        parts["place"] = max(0.0, 1 - distance / FAR_PIXELS)
    return parts


def _around(sought: SoughtElement, one: ElementFacts, weights: Mapping[str, float]) -> float | None:
    """Return how much of the texts around the sought element is around another one; a text that is
    around few elements counts more, and most of all one that tells the sought one from its equals.
    """
    decisive = {text for name in sought.names for text in name.near}
    texts = _texts_around(sought.facts)
    if not texts:
        return None
    there = _texts_around(one)
    found = total = 0.0
    for text in texts:
        near = next((other for other in there if same_text(text, other)), None)
        weight = (weights.get(near, 1.0) if near else 1.0) + DECISIVE * (text in decisive)
        total += weight
        found += weight if near else 0.0
    return found / total


def _texts_around(one: ElementFacts) -> tuple[str, ...]:
    # the kind of a landmark, and the texts in it and before it
    own = set(one.names)
    texts = (*one.near, one.heading, one.form, one.landmark)
    return tuple(dict.fromkeys(text for text in texts if text and text not in own))


def _text_weights(elements: Sequence[ElementFacts]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for one in elements:
        for text in _texts_around(one):
            counts[text] = counts.get(text, 0) + 1
    return {text: max(0.15, 1 / count) for text, count in counts.items()}


def _refusal(sought: SoughtElement, best: Rated, others: Sequence[SoughtElement]) -> str | None:
    """Return why the best element may not be taken."""
    known, one = sought.facts, best.facts
    if one.host not in ("", known.host):
        return f"{one} leads to {one.host}"
    if (meaning := _other_meaning(known, one)) is not None:
        return meaning
    lost = [value for value in sought.values if _lost(sought, one, value)]
    if lost:
        return f"{one} does not name {', '.join(lost)}"
    name = best.parts.get("name")
    if name is None:
        if "attributes" not in best.parts:
            return "the target has no name to look for"
    elif name < LEAST_NAME and (not _same_attribute(known, one) or name < 0.25):
        return f"no element has a name like {known}; the nearest is {one}"
    for other in others:
        if other.names != sought.names and other.fits(one):
            theirs = nearest_likeness(other.facts.names, one.names)
            if theirs >= 0.95 and theirs > (name or 0) + OWN:
                return f"{one} is the element of another step"
    if best.score < LEAST:
        return f"{one} is not like {known} enough ({best.score:.2f})"
    return None


def _other_meaning(known: ElementFacts, one: ElementFacts) -> str | None:
    """Return why an element that is clicked or checked does another thing."""
    if not {known.role, one.role} & (CLICKED | CHECKED) and known.role:
        return None
    before = frozenset().union(*map(actions_of, known.names))
    after = frozenset().union(*map(actions_of, one.names))
    if ("not" in before) is not ("not" in after):
        return f"{one} is a negation of {known}"
    if grave := (after & GRAVE) - before:
        return f"{one} does another thing: {', '.join(sorted(grave))}"
    if before - {"not"} and after - {"not"} and not before & after:
        return f"{one} does another thing than {known}"
    if known.names and not one.names:
        return "the nearest element has no name"
    if (
        one.type == "submit"
        and known.type not in ("", "submit")
        and nearest_likeness(known.names, one.names) < 0.9
    ):
        return f"{one} sends a form"
    return None


def _same_attribute(known: ElementFacts, one: ElementFacts) -> bool:
    """Whether an attribute that names one element alone is equal."""
    return any(
        getattr(known, key) and getattr(known, key) == getattr(one, key)
        for key in ("test_id", "href", "field")
    ) or bool(known.options and list(known.options) == list(one.options))


def _lost(sought: SoughtElement, one: ElementFacts, value: str) -> bool:
    """Whether a value is in the names of the target, or in a text near it, and not in those of an
    element.
    """
    near = [text for name in sought.names for text in name.near]
    return (_has(sought.facts.names, value) and not _has(one.names, value)) or (
        _has(near, value) and not _has((*one.names, *_texts_around(one)), value)
    )


def _has(texts: Iterable[str], value: str) -> bool:
    return any(value.casefold() in text.casefold() for text in texts)
