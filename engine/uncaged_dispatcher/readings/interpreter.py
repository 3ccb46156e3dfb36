"""Interpreter: a sentence becomes calls by the rules of the store's flows and packs. It starts no
thread, asks no model and prints nothing.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import replace
from uncaged_engine.api import Engine

from ..calls import Advice, Interpretation, Miss, Offer, Question
from ..grammar.compiled import CompiledGrammar
from ..grammar.sentences import Sentence
from ..index.rule_index import RuleIndex
from ..packs.sites import CurrentSite
from .candidates import CandidateReading
from .collisions import colliding, decide
from .context import SentenceContext
from .preferences import CollisionLog, Preferences, situation
from .reading import SentenceReader, is_outside

SHOWN_CHOICES = 9
SHOWN_REFUSALS = 5


class Interpreter:
    """Reads sentences by the rules of one store. A change of a flow or a pack counts at the next
    sentence. `close` closes the index.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.index = RuleIndex(engine)
        self.preferences = Preferences(engine.store)
        self.collisions = CollisionLog(engine.store)
        self._reader = SentenceReader(self.index)

    def close(self) -> None:
        self.index.close()

    def interpret(
        self, text: str, *, context: SentenceContext | None = None, log: bool = True
    ) -> Interpretation | Question | Miss:
        """Return the calls that a sentence means, a question if several readings are equally good,
        or a miss.

        Args:
            log: add a collision to the last ones.

        Raises:
            SentenceError: the sentence is too long, or has characters that are not read.
        """
        begin = time.perf_counter()
        context = context or SentenceContext()
        sentence = Sentence(text.strip())
        candidates = self._reader.leading(
            sentence, context, lambda: self.engine.config.collisions.kind == "scores"
        )
        accepted = self._reader.accepted(candidates, context)
        first = next(accepted, None)
        if first is None:
            return self._miss(sentence.text, candidates, context, begin)
        if len(candidates) == 1:
            return _interpretation(first, begin)
        # the other packs are for what those of the activity leave unknown
        outside = is_outside(first, context)
        others = [one for one in accepted if is_outside(one, context) == outside]
        return self._decided(sentence.text, [first, *others], begin, log=log)

    def choose(
        self,
        question: Question,
        answer: str,
        *,
        remember: bool = False,
        context: SentenceContext | None = None,
    ) -> Interpretation:
        """Return the reading that a person chose; with *remember*, the same choice among the same
        flows is not asked again.

        Args:
            context: the one in which the sentence was read.
        Raises:
            UsageError: the answer names no choice.
        """
        chosen = question.choice(answer).interpretation
        if remember:
            candidates = [
                candidate
                for candidate in self.candidates(question.sentence, context=context)
                if any(candidate.calls == one.interpretation.calls for one in question.choices)
            ]
            for candidate in candidates:
                if candidate.calls == chosen.calls:
                    self.preferences.keep(question.sentence, candidates, candidate)
                    break
        return chosen

    def candidates(
        self, text: str, *, context: SentenceContext | None = None
    ) -> list[CandidateReading]:
        """Return all readings of a sentence, best first, with the reason where one is refused."""
        context = context or SentenceContext()
        candidates = self._reader.candidates(Sentence(text.strip()), context)
        return [self._reader.checked(candidate, context) for candidate in candidates]

    def read_by(self, grammar: CompiledGrammar, flow: str, text: str) -> CandidateReading | None:
        """Return the best reading of a sentence by a rule that is not in the index, as a call of
        *flow*; None if it does not read it.
        """
        return self._reader.read_by(grammar, flow, Sentence(text.strip()), SentenceContext())

    def remembered_choice(self, text: str, *, context: SentenceContext | None = None) -> str | None:
        """Return the key of the remembered choice that decides a sentence, or None."""
        sentence = Sentence(text.strip())
        context = context or SentenceContext()
        found = self._reader.candidates(sentence, context)
        accepted = list(self._reader.accepted(found, context))
        tied = colliding(accepted, self.engine.config.collisions) if accepted else []
        if len(tied) < 2 or self.preferences.find(sentence.text, tied) is None:
            return None
        return situation(sentence.text, tied)

    def _decided(
        self, sentence: str, accepted: Sequence[CandidateReading], begin: float, *, log: bool
    ) -> Interpretation | Question | Miss:
        settings = self.engine.config.collisions
        tied = colliding(accepted, settings)
        if len(tied) == 1:
            return _interpretation(tied[0], begin)
        chosen, remembered = decide(sentence, tied, settings, self.preferences)
        if log:
            self.collisions.append(
                {
                    "request": sentence,
                    "candidates": [[call.document() for call in one.calls] for one in tied],
                    "chosen": None if chosen is None else tied.index(chosen),
                    "strategy": settings.strategy,
                    "elapsedMs": round(_elapsed_ms(begin), 3),
                }
            )
        if chosen is not None:
            return replace(_interpretation(chosen, begin), remembered=remembered)
        if settings.several == "abort" and any(len(one.calls) > 1 for one in tied):
            return Miss(
                sentence=sentence,
                why=f"{sentence!r} has {len(tied)} meanings; write each request by itself",
                elapsed_ms=_elapsed_ms(begin),
            )
        return _question(sentence, tied[:SHOWN_CHOICES], begin)

    def _miss(
        self,
        sentence: str,
        candidates: Sequence[CandidateReading],
        context: SentenceContext,
        begin: float,
    ) -> Miss:
        checked = [self._reader.checked(candidate, context) for candidate in candidates]
        disabled = [one for one in checked if one.disabled and not one.refused]
        away = [one.away for one in checked if one.away and not (one.refused or one.disabled)]
        refused = [one.refused for one in checked if one.refused and not one.disabled]
        enable = disabled[0].disabled if disabled else None
        if enable is not None:
            why = f"{' and '.join(disabled[0].flows)} would read this and is disabled: {enable}"
        elif away:
            why = away[0]
        elif refused:
            why = f"no flow accepts these parameters: {refused[0]}"
        else:
            why = "no flow reads this sentence"
        return Miss(
            sentence=sentence,
            why=why,
            refused=tuple(dict.fromkeys(refused))[:SHOWN_REFUSALS],
            enable=enable,
            advise=functools.cache(functools.partial(self._advice, sentence, context)),
            elapsed_ms=_elapsed_ms(begin),
        )

    def _advice(self, sentence: str, context: SentenceContext) -> Advice:
        from .advice import corrected, nearest_flows

        def reads(text: str) -> bool:
            try:
                found = self._reader.candidates(Sentence(text), context)
            except UsageError:
                return False
            return next(self._reader.accepted(found, context), None) is not None

        return Advice(
            nearest=nearest_flows(sentence, self._patterns()),
            corrected=corrected(sentence, self.index.words(), reads),
        )

    def _patterns(self) -> Iterator[tuple[str, str, str]]:
        """Yield flow, description and pattern of each rule of an enabled flow."""
        packs, site = self.index.packs(), CurrentSite(self.engine.store)
        for flow, facts, rules in self.index.enabled():
            pack = packs.of_flow(flow, str(facts.get("pack", "")))
            if pack is None or (pack.enabled and site.lack(pack) is None):
                for rule in rules:
                    yield flow, str(facts.get("description", "")), rule.pattern


def _question(sentence: str, tied: Sequence[CandidateReading], begin: float) -> Question:
    offers = tuple(
        Offer(
            id=str(number), label=label(candidate), interpretation=_interpretation(candidate, begin)
        )
        for number, candidate in enumerate(tied, 1)
    )
    return Question(
        kind="collision",
        sentence=sentence,
        text=f"{sentence!r} has {len(offers)} meanings. Which one?",
        choices=offers,
        elapsed_ms=_elapsed_ms(begin),
    )


def label(candidate: CandidateReading) -> str:
    """Return a reading in words: the flows with their parameters."""
    return ", then ".join(
        f"{call.flow}{''.join(f' {name}={value}' for name, value in call.params.items())}"
        for call in candidate.calls
    )


def _interpretation(candidate: CandidateReading, begin: float) -> Interpretation:
    return Interpretation(
        calls=candidate.calls,
        by=candidate.by,
        rule=candidate.pattern,
        pack=candidate.pack,
        elapsed_ms=_elapsed_ms(begin),
        confirm=candidate.confirm,
    )


def _elapsed_ms(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000
