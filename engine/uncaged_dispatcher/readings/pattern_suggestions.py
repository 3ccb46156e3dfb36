"""Check of proposed patterns: each compiles, reads its own sentence as the call that it means, and
takes no sentence from another flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from ..constructions.construction import schema_defaults
from ..grammar.compiled import CompiledGrammar
from ..grammar.problems import GrammarError
from ..grammar.sentences import index_words
from ..index.compiling import load_pattern
from ..packs.patterns import pattern_rule
from .candidates import CandidateReading
from .collision_scan import FORMS, forms
from .interpreter import Interpreter
from .pattern_sources import PatternProposal


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPattern:
    """A proposal with the reason why it cannot be used, or None. other: the flows it collides with;
    witness: a sentence that both read.
    """

    proposal: PatternProposal
    refused: str | None = None
    other: tuple[str, ...] = ()
    witness: str | None = None

    def document(self) -> dict[str, object]:
        """Return the pattern as JSON."""
        return {
            "pattern": self.proposal.pattern,
            "sentence": self.proposal.sentence,
            "params": self.proposal.params and dict(self.proposal.params),
            "origin": self.proposal.origin,
            "refused": self.refused,
            "other": list(self.other),
            "witness": self.witness,
        }


def checked_patterns(
    interpreter: Interpreter,
    flow: str,
    parameters: Mapping[str, object],
    proposals: Iterable[PatternProposal],
    least_words: int = 0,
) -> list[CheckedPattern]:
    """Return the proposals whose sentences the flow's patterns do not read yet, each checked; one
    whose sentence an earlier one reads is left out.

    Args:
        least_words: words that a pattern must require, so that it does not read nearly every
            sentence.
    """
    interpreter.index.refresh()
    found: list[CheckedPattern] = []
    accepted: list[CompiledGrammar] = []
    for proposal in proposals:
        if any(one.proposal.pattern == proposal.pattern for one in found):
            continue
        if _is_read(interpreter, flow, proposal.sentence) or any(
            interpreter.read_by(grammar, flow, proposal.sentence) for grammar in accepted
        ):
            continue
        checked, grammar = _checked(interpreter, flow, parameters, proposal, least_words)
        found.append(checked)
        accepted += [grammar] if grammar is not None and checked.refused is None else []
    return found


def _checked(
    interpreter: Interpreter,
    flow: str,
    parameters: Mapping[str, object],
    proposal: PatternProposal,
    least_words: int,
) -> tuple[CheckedPattern, CompiledGrammar | None]:
    properties = parameters.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    try:
        grammar = load_pattern(pattern_rule(flow, proposal.pattern, names))
        own = interpreter.read_by(grammar, flow, proposal.sentence)
    except GrammarError as exc:
        return CheckedPattern(proposal=proposal, refused=exc.problems[0].message), None
    except UsageError as exc:
        return CheckedPattern(proposal=proposal, refused=str(exc)), None
    required = [len(words) for entry in grammar.entries for words in entry.required]
    if min(required, default=0) < least_words:
        why = f"it requires fewer than {least_words} words, so it reads too many sentences"
        return CheckedPattern(proposal=proposal, refused=why), None
    defaults = schema_defaults(parameters)
    read = {} if own is None else {**defaults, **own.calls[0].params}
    expected = read if proposal.params is None else {**defaults, **proposal.params}
    if own is None or read != expected:
        why = "it does not read its own sentence as that call"
        return CheckedPattern(proposal=proposal, refused=why), None
    for sentence, ours, others in _shared(interpreter, flow, grammar, proposal.sentence):
        flows = sorted({"+".join(one.flows) for one in others})
        if ours:
            return CheckedPattern(
                proposal=proposal,
                refused=f"{' and '.join(flows)} reads {sentence!r}, too",
                other=tuple(flows),
                witness=sentence,
            ), grammar
    return CheckedPattern(proposal=proposal), grammar


def _shared(
    interpreter: Interpreter, flow: str, grammar: CompiledGrammar, source: str
) -> Iterator[tuple[str, bool, list[CandidateReading]]]:
    """Yield the sentences that the grammar and other flows read, and whether they collide there: an
    own sentence that another flow reads as well or better, or another flow's that it would take.
    """
    for sentence in (source, *islice(forms(grammar), FORMS)):
        yield from _collision(interpreter, flow, grammar, sentence, is_own=True)
    for other in list(interpreter.index.enabled_grammars()):
        for sentence in islice(forms(other), FORMS):
            if _may_read(grammar, sentence):
                yield from _collision(interpreter, flow, grammar, sentence, is_own=False)


def _collision(
    interpreter: Interpreter, flow: str, grammar: CompiledGrammar, sentence: str, *, is_own: bool
) -> Iterator[tuple[str, bool, list[CandidateReading]]]:
    try:
        ours = interpreter.read_by(grammar, flow, sentence)
        others = [
            one
            for one in interpreter.candidates(sentence)
            if one.disabled is None and one.flows != (flow,)
        ]
    except UsageError:
        return  # it is too long, or takes too much work
    if ours is None or not others:
        return
    best = min(one.order for one in others)
    collides = best <= ours.order if is_own else ours.order <= best
    yield sentence, collides, [one for one in others if one.order == best]


def _may_read(grammar: CompiledGrammar, sentence: str) -> bool:
    """Return whether a sentence has the words that a grammar requires."""
    words = set(index_words(sentence.casefold()))
    return any(
        not entry.required or any(words.issuperset(required) for required in entry.required)
        for entry in grammar.entries
    )


def _is_read(interpreter: Interpreter, flow: str, sentence: str) -> bool:
    """Return whether a pattern of the flow reads a sentence; what was learned does not count."""
    try:
        found = interpreter.candidates(sentence)
    except UsageError:
        return True  # no pattern can read it
    return any(one.flows == (flow,) and one.by == "grammar" for one in found)
