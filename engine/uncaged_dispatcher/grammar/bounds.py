"""Bounds of the ranks of a rule's readings, known before any sentence is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncaged_dispatcher.grammar.patterns import (
    NumberSlot,
    Pattern,
    Phrase,
    Reference,
    Rules,
    Step,
    TextSlot,
)
from uncaged_dispatcher.grammar.readings import Rank
from uncaged_dispatcher.grammar.requirements import ALWAYS, inner_first
from uncaged_dispatcher.grammar.syntax import Repeat

UNLIMITED: Final = 1 << 20
"""More required parts than a sentence has characters."""

_Bound = tuple[bool, int]
"""Whether each reading has free text, and the most required parts of one."""
_UNKNOWN: Final[_Bound] = (False, UNLIMITED)


def bound_of_readings(rules: Rules, start: int, free: str) -> int:
    """Return a bound that `bound_of_rank` is not below for any reading by the start rule.

    free: the type of captures that are free text, like those without a type.
    """
    found: dict[int, _Bound] = {}
    for rule, _ in inner_first(rules, start):
        bounds = [_pattern_bound(pattern, free, found) for pattern in rules[rule]]
        found[rule] = (
            all(has_free_text for has_free_text, _ in bounds),
            max((required for _, required in bounds), default=0),
        )
    return _encoded(*found[start])


def bound_of_rank(rank: Rank) -> int:
    """Return the part of a rank that bounds are compared with."""
    return _encoded(rank.has_free_text, -rank.fewer_required_parts)


def _encoded(has_free_text: bool, required: int) -> int:
    return 2 * UNLIMITED * has_free_text + UNLIMITED - min(required, UNLIMITED)


def _pattern_bound(pattern: Pattern, free: str, found: Mapping[int, _Bound]) -> _Bound:
    has_free_text, required = False, 0
    for step in pattern.steps:
        inner_free, parts = _step_bound(step, free, found)
        has_free_text |= inner_free and step.repeat in ALWAYS
        match step.repeat:
            case Repeat.ONCE:
                required += parts
            case Repeat.SOME:
                required = UNLIMITED
            case _:
                pass
    return has_free_text, required


def _step_bound(step: Step, free: str, found: Mapping[int, _Bound]) -> _Bound:
    """Return the bound of one repetition of a step."""
    match step.part:
        case Phrase(words=words):
            return False, len(words)
        case NumberSlot():
            return False, 1
        case TextSlot(entity=entity):
            return entity in ("", free), 1
        case Reference(rule=rule):
            return found.get(rule, _UNKNOWN)
