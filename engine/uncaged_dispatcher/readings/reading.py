"""Reader of sentences: the candidates of the index, each read by its rule, ranked and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import replace

from ..calls import Call, Tier
from ..entities.captures import TEXT
from ..entities.readers import Readers
from ..entities.types import EntityType
from ..grammar.best import best_reading
from ..grammar.choices import Choices
from ..grammar.matching import match_all
from ..grammar.occurrences import MAX_STEPS, Occurrences
from ..grammar.patterns import Rules, TextSlot
from ..grammar.readings import Reading
from ..grammar.requirements import index_words
from ..grammar.sentences import Sentence, SentenceError
from ..index.rule_index import IndexedRule, RuleIndex
from ..packs.pack import Pack
from ..packs.registered import PackSet
from ..packs.verbs import is_verb, verb_refusal
from .candidates import CandidateReading, flow_calls, pack_calls
from .checks import refusal
from .context import SentenceContext

MOST_READINGS = 64
"""Readings of one rule among which equally good ones are looked for."""
MOST_STEPS = 2 * MAX_STEPS
"""Work for all rules of one sentence."""


class SentenceReader:
    """Readings of sentences by the rules of an index."""

    def __init__(self, index: RuleIndex) -> None:
        self._index = index

    def candidates(self, sentence: Sentence, context: SentenceContext) -> list[CandidateReading]:
        """Return the readings of a sentence as calls, best first, by the rules as they are now; not
        yet checked.

        Raises:
            SentenceError: reading takes too much work, and no rule was read before.
        """
        self._index.refresh()
        rules = self._index.find(index_words(sentence.folded))
        if not rules:
            return []
        packs = self._index.packs()
        places = Occurrences(
            sentence,
            whole_words=True,
            entities=Readers(_declared(packs), context.entities, context.now),
        )
        found: list[CandidateReading] = []
        spent = 0
        problem: SentenceError | None = None
        for rule in rules:
            places.steps = 0
            try:
                for reading in _readings(rule, places):
                    found += self._calls(rule, reading, sentence, packs, context)
            except SentenceError as exc:
                problem = exc
            spent += places.steps
            if spent > MOST_STEPS:
                break
        if problem is not None and not found:
            raise problem
        found.sort(key=lambda candidate: (_outside(candidate, context), candidate.order))
        return found

    def accepted(
        self, candidates: Iterable[CandidateReading], context: SentenceContext
    ) -> Iterator[CandidateReading]:
        """Yield the candidates that can run, best first."""
        for candidate in candidates:
            if candidate.disabled is None and self.checked(candidate, context).refused is None:
                yield candidate

    def checked(self, candidate: CandidateReading, context: SentenceContext) -> CandidateReading:
        """Return a candidate with the reason why a flow refuses its parameters."""
        if candidate.refused is not None:
            return candidate
        if is_verb(candidate.calls):
            return replace(candidate, refused=verb_refusal(candidate.calls[0]))
        for call in candidate.calls:
            flow = self._index.flow(call.flow)
            if flow is None:
                return replace(candidate, refused=f"there is no flow {call.flow!r}")
            problem = refusal(call, flow[1], context)
            if problem is not None:
                return replace(candidate, refused=problem)
        return candidate

    def _calls(
        self,
        rule: IndexedRule,
        reading: Reading,
        sentence: Sentence,
        packs: PackSet,
        context: SentenceContext,
    ) -> Iterator[CandidateReading]:
        """Yield the calls of one reading: one candidate for each flow with this bundle."""
        pattern = rule.row.pattern
        unknown = _unknown_entity(reading)
        declared = str(rule.facts.get("pack", ""))
        if rule.is_pack:
            pack = packs.packs.get(declared)
            if pack is None:
                return
            try:
                calls, implicit = pack_calls(
                    reading, sentence, rule, self._flows_of(pack), verbs=pack.built_in
                )
            except UsageError as exc:
                calls, implicit, unknown = (), 0, unknown or str(exc)
            found: list[tuple[tuple[Call, ...], int, Pack | None]] = [(calls, implicit, pack)]
        else:
            found = [
                (*flow_calls(reading, sentence, flow), packs.of_flow(flow.name, declared))
                for flow in rule.flows
            ]
        for calls, implicit, owner in found:
            name = "" if owner is None else owner.name
            if context.exclusive and name not in context.packs:
                continue
            yield CandidateReading(
                calls=calls,
                rule=rule.row.name,
                pattern=pattern,
                pack=name,
                priority=0 if owner is None else owner.priority,
                rank=reading.rank,
                implicit=implicit,
                by=_tier(rule, calls),
                confirm=self._marked(calls),
                disabled=self._disabled(calls, owner),
                refused=unknown,
            )

    def _flows_of(self, pack: Pack) -> set[str]:
        return {*pack.flows, *self._index.declared_flows(pack.name)}

    def _marked(self, calls: Sequence[Call]) -> tuple[str, ...]:
        """Return the flows among the calls that run only with consent."""
        found = map(self._index.flow, dict.fromkeys(call.flow for call in calls))
        return tuple(flow[0].name for flow in found if flow is not None and flow[0].confirm)

    def _disabled(self, calls: Sequence[Call], pack: Pack | None) -> str | None:
        """Return the command that enables the pack or a flow of the calls, if one is disabled."""
        if pack is not None and not pack.enabled:
            return f"uncaged-workflow pack enable {pack.name}"
        for call in calls:
            found = self._index.flow(call.flow)
            if found is not None and not found[0].enabled:
                return f"uncaged-workflow enable {call.flow}"
        return None


def _tier(rule: IndexedRule, calls: Sequence[Call]) -> Tier:
    if is_verb(calls):
        return "verb"
    return "construction" if rule.is_learned else "grammar"


def _readings(rule: IndexedRule, places: Occurrences) -> Iterator[Reading]:
    """Yield the best reading of a rule, and those that are as good."""
    best = best_reading(rule.grammar, places)
    if best is None:
        return
    yield best
    if _text_slots(rule.grammar.rules) < 2:
        return
    values = [best.value]
    for reading in match_all(rule.grammar, places, Choices(), MOST_READINGS):
        if reading.rank == best.rank and reading.value not in values:
            values.append(reading.value)
            yield reading


def _text_slots(rules: Rules) -> int:
    return sum(
        isinstance(step.part, TextSlot)
        for patterns in rules
        for pattern in patterns
        for step in pattern.steps
    )


def _unknown_entity(reading: Reading) -> str | None:
    """Return the problem of a capture whose type has no reader."""
    for entity in reading.entities:
        if entity.type != TEXT and entity.value is None:
            return f"no installed pack reads values of the type {entity.type}"
    return None


def _declared(packs: PackSet) -> Mapping[str, EntityType]:
    """Return the entity types of all packs; an enabled pack's come before a disabled one's."""
    found: dict[str, EntityType] = {}
    for pack in sorted(packs.packs.values(), key=lambda pack: not pack.enabled):
        found = {**pack.entities, **found}
    return found


def _outside(candidate: CandidateReading, context: SentenceContext) -> bool:
    """Return whether a candidate is of another pack than those of the activity."""
    return bool(context.packs) and candidate.pack not in context.packs
