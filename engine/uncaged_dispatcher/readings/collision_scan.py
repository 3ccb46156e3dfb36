"""Search for sentences that flows of different packs read: each rule is said in some of its forms,
and every rule reads the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from ..grammar.compiled import CompiledGrammar
from ..grammar.patterns import NumberSlot, Pattern, Phrase, Reference, Step
from ..grammar.syntax import Repeat
from .interpreter import Interpreter

FORMS = 32
"""Sentences that are made of one rule."""
DEPTH = 6
"""Rules inside rules that are followed."""
FREE_TEXT = "something"
A_NUMBER = "7"
ALIKE = 85.0
"""Similarity of descriptions in percent from which two flows are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticCollision:
    """A sentence that flows of different packs read equally well."""

    flows: tuple[str, ...]
    packs: tuple[str, ...]
    sentence: str

    def document(self) -> dict[str, object]:
        """Return the collision as JSON."""
        return {"flows": list(self.flows), "packs": list(self.packs), "sentence": self.sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarFlows:
    """Two flows of different packs whose descriptions are alike."""

    flows: tuple[str, str]
    percent: float

    def document(self) -> dict[str, object]:
        """Return the pair as JSON."""
        return {"flows": list(self.flows), "percent": round(self.percent, 1)}


def static_collisions(interpreter: Interpreter) -> list[StaticCollision]:
    """Return the collisions among enabled flows, one sentence for each set of flows. A collision
    that needs a certain text in a free capture can be missed; each one found is real.
    """
    found: dict[tuple[str, ...], StaticCollision] = {}
    interpreter.index.refresh()
    for grammar in list(interpreter.index.enabled_grammars()):
        for sentence in islice(forms(grammar), FORMS):
            collision = _collision(interpreter, sentence)
            if collision is not None:
                found.setdefault(collision.flows, collision)
    return [found[key] for key in sorted(found)]


def forms(grammar: CompiledGrammar) -> Iterator[str]:
    """Yield sentences that a grammar reads, the shortest forms first."""
    for pattern in grammar.rules[grammar.start]:
        for words in _pattern_forms(grammar, pattern, 0):
            yield " ".join(words.split())


def similar_flows(interpreter: Interpreter) -> list[SimilarFlows]:
    """Return the pairs of enabled flows of different packs whose descriptions are alike."""
    from rapidfuzz import fuzz

    interpreter.index.refresh()
    packs = interpreter.index.packs()
    flows = []
    for name, facts, _ in interpreter.index.enabled():
        pack = packs.of_flow(name, str(facts.get("pack", "")))
        flows.append((name, "" if pack is None else pack.name, str(facts.get("description", ""))))
    return [
        SimilarFlows(flows=(one, other), percent=percent)
        for at, (one, pack, text) in enumerate(flows)
        for other, second_pack, second in flows[at + 1 :]
        if pack != second_pack
        and (percent := fuzz.token_sort_ratio(text, second, score_cutoff=ALIKE)) >= ALIKE
    ]


def _collision(interpreter: Interpreter, sentence: str) -> StaticCollision | None:
    try:
        readings = [one for one in interpreter.candidates(sentence) if one.disabled is None]
    except UsageError:
        return None  # it is too long, or takes too much work
    tied = [one for one in readings if one.order == readings[0].order]
    if len({one.flows for one in tied}) < 2 or len({one.pack for one in tied}) < 2:
        return None
    pairs = sorted({("+".join(one.flows), one.pack) for one in tied})
    return StaticCollision(
        flows=tuple(flow for flow, _ in pairs),
        packs=tuple(pack for _, pack in pairs),
        sentence=sentence,
    )


def _pattern_forms(grammar: CompiledGrammar, pattern: Pattern, depth: int) -> Iterator[str]:
    choices = [list(islice(_step_forms(grammar, step, depth), FORMS)) for step in pattern.steps]
    for parts in islice(product(*choices), FORMS):
        yield " ".join(parts)


def _step_forms(grammar: CompiledGrammar, step: Step, depth: int) -> Iterator[str]:
    if step.repeat in (Repeat.OPTIONAL, Repeat.ANY):
        yield ""
    match step.part:
        case Phrase(text=text):
            yield text
        case NumberSlot():
            yield A_NUMBER
        case Reference(rule=rule):
            if depth < DEPTH:
                for pattern in grammar.rules[rule]:
                    yield from _pattern_forms(grammar, pattern, depth + 1)
        case _:
            yield FREE_TEXT
