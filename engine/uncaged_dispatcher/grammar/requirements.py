"""Words that a sentence must hold to be read by a rule, for an index over many grammars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from uncaged_dispatcher.grammar.patterns import Pattern, Phrase, Reference, Rules, Step
from uncaged_dispatcher.grammar.sentences import index_words
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing

WordSets = tuple[frozenset[str], ...]
"""A sentence is a candidate if it holds all words of one of the sets."""
NOTHING: WordSets = (frozenset(),)
MAX_SETS = 16
"""Most sets of one rule; beyond it words are dropped, which only makes more candidates."""
DIVIDED = (Spacing.AUTO, Spacing.REQUIRED)
"""Spacing that keeps the words of a pattern apart from their neighbours."""
MAX_WORDS = 64
"""Words of a set after which no further step of a pattern is looked at: a long pattern would take
time with the square of its length.
"""
MAX_COMPARED = 4 * MAX_SETS
"""Most sets that are compared with each other."""
ALWAYS = (Repeat.ONCE, Repeat.SOME)
"""Repetitions of a step that every reading has."""


def required_words(rules: Rules, start: int) -> tuple[WordSets, ...]:
    """Return the sets of required words for each pattern of the start rule."""
    found: dict[tuple[int, bool], WordSets] = {}
    for key in inner_first(rules, start):
        found[key] = _either(_all(p, divided=key[1], found=found) for p in rules[key[0]])
    return tuple(_all(pattern, divided=True, found=found) for pattern in rules[start])


def inner_first(rules: Rules, start: int) -> Iterator[tuple[int, bool]]:
    """Yield each rule that the start reaches after the rules in it, and whether its text surely
    begins at the boundary of a word; a rule inside itself comes once, after the rest.
    """
    pending = [(start, True)]
    entered = set()
    done = set()
    while pending:
        key = pending[-1]
        rule, divided = key
        references = [
            (step.part.rule, safe)
            for pattern in rules[rule]
            for step, safe in _steps(pattern, divided=divided)
            if isinstance(step.part, Reference)
        ]
        if key in entered or not (missing := [k for k in references if k not in entered]):
            pending.pop()
            if key not in done:
                done.add(key)
                yield key
        else:
            pending += missing
        entered.add(key)


def _steps(pattern: Pattern, *, divided: bool) -> Iterator[tuple[Step, bool]]:
    """Yield each step, and whether its text surely begins at the boundary of a word."""
    own = pattern.spacing in DIVIDED
    first = True
    for step in pattern.steps:
        yield step, own and (divided or not first)
        if step.repeat in ALWAYS and not isinstance(step.part, Reference):
            first = False


def _all(
    pattern: Pattern, *, divided: bool, found: Mapping[tuple[int, bool], WordSets]
) -> WordSets:
    """Return the sets that meet the requirements of all steps of a pattern."""
    sets = NOTHING
    for step, safe in _steps(pattern, divided=divided):
        if step.repeat not in ALWAYS:
            continue
        if any(len(words) >= MAX_WORDS for words in sets):
            break
        match step.part:
            case Phrase(words=words) if safe:
                each: WordSets = (frozenset(u for word in words for u in index_words(word)),)
            case Reference(rule=rule):
                each = found.get((rule, safe), NOTHING)
            case _:
                continue
        if each == NOTHING:
            continue
        if sets == NOTHING:
            sets = each
        elif len(sets) == len(each) == 1:
            sets = (sets[0] | each[0],)
        elif len(sets) * len(each) <= MAX_SETS:
            sets = _either((left | right,) for left in sets for right in each)
    return sets


def _either(choices: Iterable[WordSets]) -> WordSets:
    """Return the sets of which one is met when one of the choices is met."""
    distinct = {words for choice in choices for words in choice}
    if len(distinct) == 1:
        return tuple(distinct)
    if len(distinct) > MAX_COMPARED:
        return (frozenset.intersection(*distinct),)
    kept: list[frozenset[str]] = []
    for words in sorted(distinct, key=lambda words: (len(words), sorted(words))):
        if not any(smaller <= words for smaller in kept):
            kept.append(words)
    if len(kept) > MAX_SETS:
        return (frozenset.intersection(*kept),)
    return tuple(kept) or NOTHING
