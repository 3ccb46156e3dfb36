"""Shapes of sentences: the words that a rule reads in order, with gaps for any others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ..grammar.patterns import Pattern, Phrase, Reference, Rules, Step
from ..grammar.requirements import DIVIDED, index_words
from ..grammar.syntax import Repeat

GAP, NUMBER = "*", "#"
"""Marks, which as punctuation are no words: any words in a shape, and a number among the required
words.
"""
MOST_ALTERNATIVES = 8
"""Alternatives of a group of words that are spelled out in shapes."""

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
    for spelled_out in (True, False):
        found = [_NOTHING]
        for step in pattern.steps:
            choices = tuple(_choices(rules, step) if spelled_out else _words_or_gap(step))
            found = list(dict.fromkeys(_joined(one, each) for one in found for each in choices))
            if len(found) > most:
                break
        else:
            break
    return tuple(map(_encoded, found))


def spaced(words: Sequence[str]) -> str:
    """Return words with a space before and after each."""
    return f" {' '.join(words)} " if words else " "


def first_run(shape: str) -> list[str]:
    """Return the words with which each sentence of a shape begins."""
    return shape.partition(GAP)[0].split()


def fits(shape: str, text: str) -> bool:
    """Return whether a text, made by `spaced`, has a shape."""
    first, *middle = shape.split(GAP)
    if not middle:
        return text == first
    last = middle.pop()
    if not text.startswith(first):
        return False
    # a space ends one run of words and begins the next
    place = max(0, len(first) - 1)
    for run in middle:
        found = text.find(run, place)
        if found < 0:
            return False
        place = found + len(run) - 1
    return not last or (text.endswith(last) and len(text) - len(last) >= place)


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
