"""Shapes of sentences: the words that a rule reads in order, with gaps for any others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..grammar.patterns import Pattern, Phrase, Reference, Rules, Step
from ..grammar.requirements import DIVIDED
from ..grammar.sentences import index_words
from ..grammar.syntax import Repeat
from .fitting import GAP, spaced

MOST_ALTERNATIVES = 8
"""Alternatives of a group of words that are spelled out in shapes."""

MOST_STEPS = 200
"""Steps of a pattern that are spelled out; any words may follow those of a longer one."""

_Runs = tuple[tuple[str, ...], ...]
"""Runs of words with gaps between them. The first and the last may be empty: the sentence may begin
or end with any words, then.
"""
_NOTHING: _Runs = ((),)
_ANYTHING: _Runs = ((), ())


def shapes_of(rules: Rules, pattern: Pattern, most: int) -> tuple[str, ...]:
    """Return shapes, of which each sentence that a pattern reads has one. Where optional words and
    groups make more than *most*, they are gaps.
    """
    if pattern.spacing not in DIVIDED:
        return (GAP,)
    rest = [(_ANYTHING,)] if len(pattern.steps) > MOST_STEPS else []
    for spelled_out in (True, False):
        found = [_NOTHING]
        spelled = (
            tuple(_choices(rules, step) if spelled_out else _words_or_gap(step))
            for step in pattern.steps[:MOST_STEPS]
        )
        for choices in chain(spelled, rest):
            found = list(dict.fromkeys(_joined(one, each) for one in found for each in choices))
            if len(found) > most:
                break
        else:
            break
    return tuple(map(_encoded, found))


def _choices(rules: Rules, step: Step) -> Iterator[_Runs]:
    """Yield the runs of a step: of each alternative, where it refers to phrases."""
    part = step.part
    if step.repeat not in (Repeat.ONCE, Repeat.OPTIONAL) or not isinstance(part, Reference):
        yield from _words_or_gap(step)
        return
    patterns = rules[part.rule]
    if len(patterns) > MOST_ALTERNATIVES or not all(map(_is_phrases, patterns)):
        yield _ANYTHING
        return
    for pattern in patterns:
        yield (tuple(chain.from_iterable(_words(inner) for inner in pattern.steps)),)
    if step.repeat is Repeat.OPTIONAL:
        yield _NOTHING


def _words_or_gap(step: Step) -> Iterator[_Runs]:
    is_words = isinstance(step.part, Phrase) and step.repeat is Repeat.ONCE
    yield (_words(step),) if is_words else _ANYTHING


def _is_phrases(pattern: Pattern) -> bool:
    return pattern.spacing in DIVIDED and all(
        isinstance(step.part, Phrase) and step.repeat is Repeat.ONCE for step in pattern.steps
    )


def _words(step: Step) -> tuple[str, ...]:
    """Return the units of a phrase."""
    words = step.part.words if isinstance(step.part, Phrase) else ()
    return tuple(unit for word in words for unit in index_words(word))


def _joined(left: _Runs, right: _Runs) -> _Runs:
    """Return runs that follow each other; two gaps without words between them are one."""
    *before, last = left
    first, *after = right
    runs = [*before, last + first, *after]
    return tuple(run for place, run in enumerate(runs) if run or place in (0, len(runs) - 1))


def _encoded(runs: _Runs) -> str:
    if len(runs) == 1:
        return spaced(runs[0])
    return GAP.join(spaced(run) if run else "" for run in runs)
