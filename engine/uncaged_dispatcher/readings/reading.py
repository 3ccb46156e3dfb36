"""Reader of sentences: the candidates of the index, each read by its rule, ranked and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import replace

from ..calls import Call, Tier
from ..entities.captures import TEXT
from ..entities.readers import Readers
from ..entities.types import EntityType
from ..grammar.best import best_reading
from ..grammar.bounds import bound_of_rank
from ..grammar.choices import Choices
from ..grammar.compiled import CompiledGrammar
from ..grammar.matching import match_all
from ..grammar.occurrences import MAX_STEPS, Occurrences
from ..grammar.readings import Reading
from ..grammar.sentences import Sentence, SentenceError, index_words
from ..index.database import FoundRule
from ..index.rule_index import IndexedRule, RuleIndex
from ..packs.pack import Pack
from ..packs.registered import PackSet
from ..packs.sites import CurrentSite
from ..packs.verbs import is_verb, verb_refusal
from .candidates import CandidateReading, flow_calls, pack_calls
from .checks import refusal
from .context import SentenceContext

MOST_READINGS = 64
"""Readings of one rule among which equally good ones are looked for."""
MOST_STEPS = MAX_STEPS
"""Work for the rules of one sentence, beyond which no other rule is tried."""


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
        return self._candidates(sentence, context, lambda _found, _bound: False)

    def leading(
        self, sentence: Sentence, context: SentenceContext, is_by_rank: Callable[[], bool]
    ) -> list[CandidateReading]:
        """Return the `candidates`; if the rank alone counts, without those that are surely behind
        one that can run: their rules are not read.
        """
        if context.packs or TEXT in context.entities:
            return self.candidates(sentence, context)  # these come before a better rank

        def is_decided(found: Sequence[CandidateReading], bound: int) -> bool:
            better = (one for one in found if not one.implicit and bound_of_rank(one.rank) < bound)
            return next(self.accepted(better, context), None) is not None and is_by_rank()

        return self._candidates(sentence, context, is_decided)

    def _candidates(
        self,
        sentence: Sentence,
        context: SentenceContext,
        is_decided: Callable[[Sequence[CandidateReading], int], bool],
    ) -> list[CandidateReading]:
        """Return the readings by the rules before the first whose bound decides with those so far
        that no further rule is read.
        """
        self._index.refresh()
        listed = self._index.find(index_words(sentence.folded))
        if not listed:
            return []
        packs = self._index.packs()
        # a store without site packs does not pay for each reading
        is_sited = any(pack.is_of_site for pack in packs.packs.values())
        site = CurrentSite(self._index.store) if is_sited else None
        places = _places(sentence, packs, context)
        found: list[CandidateReading] = []
        numbers: list[int] = []
        known: dict[str, list[Reading]] = {}
        last = spent = 0
        problem: SentenceError | None = None
        for bound, rule in self._rules(listed):
            if bound > last and is_decided(found, bound):
                break
            last = bound
            if spent > MOST_STEPS:
                problem = problem or SentenceError(
                    f"the sentence has too many possible readings: gave up before the last of {len(listed)} rules"
                )
                break
            places.steps = 0
            try:
                for reading in _readings(rule, places, known):
                    calls = self._calls(rule, reading, sentence, packs, context)
                    found += (
                        calls if site is None else [_at_site(one, packs, site) for one in calls]
                    )
            except SentenceError as exc:
                problem = exc
            numbers += [rule.row.id] * (len(found) - len(numbers))
            spent += places.steps
        if problem is not None and not found:
            raise problem
        ranked = sorted(
            range(len(found)),
            key=lambda at: (is_outside(found[at], context), found[at].order, numbers[at], at),
        )
        return [found[at] for at in ranked]

    def _rules(self, listed: Iterable[FoundRule]) -> Iterator[tuple[int, IndexedRule]]:
        """Yield rules with their bounds; those of one bound are loaded at once."""
        for bound, found in groupby(listed, itemgetter(0)):
            for rule in self._index.rules([number for _, number in found]):
                yield bound, rule

    def read_by(
        self, grammar: CompiledGrammar, flow: str, sentence: Sentence, context: SentenceContext
    ) -> CandidateReading | None:
        """Return the best reading by a rule that is not in the index, as a call of *flow*."""
        places = _places(sentence, self._index.packs(), context)
        reading = best_reading(grammar, places)
        if reading is None:
            return None
        calls, implicit = flow_calls(reading, sentence, flow)
        return CandidateReading(
            calls=calls,
            rule="",
            pattern="",
            pack="",
            priority=0,
            rank=reading.rank,
            implicit=implicit,
            refused=_unknown_entity(reading),
        )

    def accepted(
        self, candidates: Iterable[CandidateReading], context: SentenceContext
    ) -> Iterator[CandidateReading]:
        """Yield the candidates that can run, best first."""
        for candidate in candidates:
            if candidate.disabled or candidate.away:
                continue
            if self.checked(candidate, context).refused is None:
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
        if rule.is_pack:
            pack = packs.packs.get(rule.pack)
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
                (*flow_calls(reading, sentence, flow.name), packs.of_flow(flow.name, rule.pack))
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


def _at_site(found: CandidateReading, packs: PackSet, site: CurrentSite) -> CandidateReading:
    """Return a candidate with the reason why its pack is not read on the page that is shown."""
    lack = site.lack(packs.packs.get(found.pack))
    return found if lack is None else replace(found, away=lack)


def _places(sentence: Sentence, packs: PackSet, context: SentenceContext) -> Occurrences:
    entities = Readers(_declared(packs), context.entities, context.now)
    return Occurrences(sentence, whole_words=True, entities=entities)


def _tier(rule: IndexedRule, calls: Sequence[Call]) -> Tier:
    if is_verb(calls):
        return "verb"
    return "construction" if rule.is_learned else "grammar"


def _readings(
    rule: IndexedRule, places: Occurrences, known: dict[str, list[Reading]]
) -> Iterator[Reading]:
    """Yield the best reading of a rule, and those that are as good.

    known: those of rules before it by their compiled form, which several flows may have.
    """
    found = known.get(rule.row.body)
    if found is not None:
        yield from found
        return
    found = known[rule.row.body] = []
    best = best_reading(rule.grammar, places)
    if best is None:
        return
    found.append(best)
    yield best
    if rule.text_slots < 2:
        return
    values = [best.value]
    for reading in match_all(rule.grammar, places, Choices(), MOST_READINGS):
        if reading.rank == best.rank and reading.value not in values:
            values.append(reading.value)
            found.append(reading)
            yield reading


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


def is_outside(candidate: CandidateReading, context: SentenceContext) -> bool:
    """Return whether a candidate is of another pack than those of the activity."""
    return bool(context.packs) and candidate.pack not in context.packs
