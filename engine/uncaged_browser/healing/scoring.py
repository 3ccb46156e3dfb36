"""Choice of the element that takes the place of one that is not found. It is made from facts alone,
and refuses rather than guesses.

An element must be of the same kind, promise the same action, lead to no other host, and be like the
sought one by far more than any other element, and than it is like any other target of the flow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from uncaged_bundles.records import dataclass

from ..elements.facts import ElementFacts
from ..operations import Drag, Fill, Select, Type, Upload
from .lexicon import GRAVE, concepts
from .likeness import CONTAINED, likeness, nearest_likeness, same_text
from .meaning import other_action, promised
from .sought import CHECKED, CLICKED, FIELDS, SoughtElement

__all__ = ["Chosen", "NotChosen", "choose"]

LEAST = 0.72
"""Least score of an element that is taken."""
MARGIN = 0.1
"""Least distance to the next best element."""
CERTAIN = 0.2
"""The same where several elements have the names of the target."""
LEAST_NAME = 0.62
KEPT_NAME = 0.25
"""Least likeness of the names, and where an attribute that names one element alone is equal."""
TELLING = GRAVE | {"cancel"}
"""Actions that an element and the one that takes its place name both, or neither."""
OWN = 0.02
"""An element is left to another target of the flow whose name it has by so much more."""
DECISIVE = 4.0
SIMILAR = 0.7
"""Weight of a text around an element that is reworded beyond synonyms."""
ALONE = 0.6
"""An element without a name is taken if so much is around it as before, and nothing else is of its
kind.
"""
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
NUMBER = re.compile(r"\d+")


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
    keeps = any(_same_attribute(sought.facts, one) for _, one in fitting)
    rated = [
        Rated(number=number, facts=one, parts=_parts(sought, one, weights, keeps=keeps))
        for number, one in fitting
    ]
    rated.sort(key=lambda one: -one.score)
    best, *rest = rated
    nearness = _nearness(sought, best.facts)
    rest = [one for one in rest if _nearness(sought, one.facts) >= nearness]
    refusal = _refusal(sought, best, others) or _refusal_of_nameless(sought, best, rest)
    if refusal is not None:
        return NotChosen(reason=refusal, candidate=best.facts)
    # an element that may not be taken is a rival all the same: the two are hard to tell apart
    margin = CERTAIN if sought.several else MARGIN
    if rest and best.score - rest[0].score < margin:
        return NotChosen(
            reason=f"two elements are alike: {best.facts} and {rest[0].facts}", candidate=best.facts
        )
    why = tuple(f"{key} {value:.2f}" for key, value in best.parts.items())
    return Chosen(number=best.number, facts=best.facts, score=round(best.score, 3), why=why)


def _parts(
    sought: SoughtElement, one: ElementFacts, weights: Mapping[str, float], *, keeps: bool
) -> dict[str, float]:
    """Return how like an element is in each regard. keeps: some element of the page has an
    attribute that names the sought one alone, so it counts against those that have not.
    """
    known = sought.facts
    parts: dict[str, float] = {}
    if _names(known):
        named = known.names or not one.names or one.role in FIELDS
        parts["name"] = nearest_likeness(_names(known), _names(one)) if named else 0.0
    equal = [
        key
        for key in ATTRIBUTES
        if getattr(known, key) and getattr(known, key) == getattr(one, key)
    ]
    if known.options and list(known.options) == list(one.options):
        equal.append("options")
    if equal:
        parts["attributes"] = 0.6 if WEAK.issuperset(equal) else 1.0
    elif keeps:
        parts["attributes"] = 0.0
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
        near, value = _nearest(text, there, exact=text in decisive)
        weight = (weights.get(near, 1.0) if near else 1.0) + DECISIVE * (text in decisive)
        total += weight
        found += weight * value
    return found / total


def _nearest(text: str, there: Sequence[str], *, exact: bool) -> tuple[str, float]:
    """Return the text that says the same, and how much it does; a text of the data that has one
    more word is another one, so only some are compared by likeness.
    """
    for other in there:
        if _same_row(text, other) if exact else same_text(text, other):
            return other, 1.0
    if exact or not there:
        return "", 0.0
    best = max(there, key=lambda other: likeness(text, other))
    return (best, SIMILAR) if likeness(text, best) >= CONTAINED else ("", 0.0)


def _names(one: ElementFacts) -> tuple[str, ...]:
    """Return the names of an element; of one without that is not clicked, the text beside it, as
    that of a cell before a field, or the title of an area.
    """
    clicked = one.role in CLICKED or one.tag in ("a", "button")
    return one.names or (() if clicked else tuple(one.near[:1]))


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
    if not _nearness(sought, one):
        return f"{one} is not near {' or '.join(sorted(sought.told))}"
    name = best.parts.get("name")
    least = KEPT_NAME if _same_attribute(known, one) else LEAST_NAME
    if known.names and (name or 0.0) < least:
        return f"no element has a name like {known}; the nearest is {one}"
    for other in others:
        if other.names != sought.names and other.fits(one):
            theirs = nearest_likeness(_names(other.facts), _names(one))
            if theirs >= 0.95 and theirs > (name or 0) + OWN:
                return f"{one} is the element of another step"
    if best.score < LEAST:
        return f"{one} is not like {known} enough ({best.score:.2f})"
    return None


def _nearness(sought: SoughtElement, one: ElementFacts) -> int:
    """Return how surely an element is near a text that tells the sought one from its equals: 0 is
    not at all, 1 by the words, 2 by their order, too, or by another fact.
    """
    if not sought.told or _same_attribute(sought.facts, one):
        return 2
    around = (*_texts_around(one), *one.names)
    pairs = [(text, other) for text in sought.told for other in around if _same_row(text, other)]
    return 2 if any(concepts(text) == concepts(other) for text, other in pairs) else bool(pairs)


def _same_row(before: str, after: str) -> bool:
    """Whether two texts are the same, with the same numbers, so that they name one row."""
    return NUMBER.findall(before) == NUMBER.findall(after) and same_text(before, after)


def _refusal_of_nameless(sought: SoughtElement, best: Rated, rest: Sequence[Rated]) -> str | None:
    """Return why an element may not be taken for one that has no name and no attribute of its own.
    One that is written into or dropped onto may, if the text beside it is the same, or if no other
    of its kind is there.
    """
    known, one = sought.facts, best.facts
    if known.names or _same_attribute(known, one):
        return None
    writes = isinstance(sought.operation, Fill | Type | Drag | Select | Upload)
    if not writes or (one.tag, one.role) != (known.tag, known.role):
        return "the target has no name to look for"
    if best.parts.get("name", 0.0) >= CONTAINED:
        return None
    alike = any((other.facts.tag, other.facts.role) == (known.tag, known.role) for other in rest)
    if best.parts.get("around", 0.0) < ALONE or alike or one.names:
        return "the target has no name, and others are like it"
    return None


def _other_meaning(known: ElementFacts, one: ElementFacts) -> str | None:
    """Return why an element that is clicked or checked does another thing."""
    if not {known.role, one.role} & (CLICKED | CHECKED) and known.role:
        return None
    if (other := other_action(known.names, one.names)) is not None:
        return f"{one} {other} {known}"
    if told := _telling_words(known, one):
        return f"{one} is not {known}: {', '.join(told)}"
    if known.names and not one.names:
        return "the nearest element has no name"
    if (
        one.type == "submit"
        and known.type not in ("", "submit")
        and nearest_likeness(known.names, one.names) < 0.9
    ):
        return f"{one} sends a form"
    return None


def _telling_words(known: ElementFacts, one: ElementFacts) -> list[str]:
    """Return what only one of two elements that are clicked says, and what tells their actions
    apart: ``Order`` is neither ``Cancel order`` nor ``Order history``.
    """
    if _same_attribute(known, one):
        return []
    before, after = (frozenset().union(*map(concepts, facts.names)) for facts in (known, one))
    lost = before - after - {"next"} if GRAVE & after else frozenset()
    return sorted(((promised(known.names) ^ promised(one.names)) & TELLING) | lost)


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
