"""Odds of edits: how often an edit of each kind, and with each trait, undid a real change.

The figures come from differences of one or two lines between consecutive releases of libraries, and
from mutants of them: an edit hits if it gives the released text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

KINDS: Mapping[str, tuple[float, float]] = {
    "comparison": (68, 504),
    "operator": (36, 234),
    "boolean": (31, 197),
    "logic": (27, 170),
    "negation": (14, 270),
    "name for None": (21, 529),
    "statement removed": (24, 756),
    "number": (82, 4062),
    "update for assignment": (9, 416),
    "condition dropped": (3, 304),
    "jump": (1, 1),
    "parameter stored": (1, 39),
    "indentation": (1, 98),
    "argument for call": (4, 872),
    "operand swap": (1, 202),
    "target": (5, 1466),
    "expression": (14, 4619),
    "condition narrowed": (2, 875),
    "similar name": (3, 1372),
    "attribute for variable": (0, 0),
    "assignment for comparison": (0, 0),
    "yield": (0, 2),
    "name for condition": (0, 4),
    "keyword passed": (3, 1498),
    "exception caught": (0, 11),
    "exception added": (0, 12),
    "value returned": (0, 18),
    "whole for slice": (0, 22),
    "branch swap": (0, 27),
    "sign removed": (0, 30),
    "index": (0, 31),
    "negation removed": (0, 36),
    "slice": (0, 42),
    "branch": (0, 56),
    "element": (0, 57),
    "result assigned": (0, 64),
    "return added": (0, 65),
    "method": (4, 2716),
    "boundary": (0, 107),
    "exception raised": (0, 107),
    "jump inserted": (0, 122),
    "condition for constant": (0, 147),
    "operand added": (0, 215),
    "variable for attribute": (1, 1134),
    "other function": (0, 221),
    "name for expression": (4, 4155),
    "argument swap": (1, 1237),
    "sibling call": (0, 306),
    "element swap": (0, 364),
    "statement order": (0, 418),
    "operand alone": (0, 427),
    "object for call": (0, 440),
    "attribute": (2, 4192),
    "off by one": (0, 682),
    "string": (12, 23808),
    "value for None": (0, 860),
    "name for constant": (1, 3117),
    "condition extended": (0, 909),
    "return inserted": (0, 1030),
    "step added": (0, 1070),
    "argument dropped": (0, 2109),
    "variable": (1, 6959),
    "assignment added": (1, 7718),
    "part of a sequence": (0, 2994),
    "statement repeated": (0, 3399),
    "guard": (0, 3418),
    "conversion": (2, 19871),
    "argument added": (0, 4262),
    "offset": (0, 5278),
    "method of a text": (0, 7592),
    "limit": (0, 7826),
    "element appended": (0, 9169),
}
"""Hits and edits of each kind. An edit counts as its preference within its kind says."""
WITHOUT_FIGURES: Mapping[str, float] = {
    **{"unknown name": 0.2, "import added": 0.2, "number of the error": 0.02},
    **{"missing argument": 0.1, "default added": 0.1, "name for attribute": 0.1},
    **{"argument of other calls": 0.02, "string of the result": 0.02, "sign reversed": 0.02},
    "fitting value for None": 0.02,
    **{"await": 0.02, "order reversed": 0.02, "index swap": 0.01},
}
"""Odds of kinds that need an error of a failing run, or that are too rare to be counted."""
TRAITS: Mapping[str, float] = {
    "all sequences known": 3.8,
    "different name": 0.95,
    "most sequences known": 1.31,
    "new": 0.52,
    "no sequence": 1.2,
    "similar name": 3.08,
    "some sequences known": 1.11,
    "used in the file": 0.98,
    "used in the function": 0.83,
    "used nearby": 1.37,
    "used nowhere": 0.74,
    **dict.fromkeys(("fits the error", "named by the error"), 3.0),
    **dict.fromkeys(("leaves a variable unused", "ends the recursion"), 0.1),
    **dict.fromkeys(("constant in a message", "hides the failure"), 0.1),
    "new dependency": 0.5,
    "runs on import": 0.1,
}
"""How much likelier a trait makes an edit. The last lines are rules, not figures: a run after
a fresh import costs 25 to 100 times as much as one in a fork of the imported code.
"""
PRIOR_HITS = 0.5
PRIOR_EDITS = 239
"""Added to each row of `KINDS`: as many edits as have half a hit on average."""
BEST = 0.184
"""Odds of the likeliest edits, whose weight is 1."""
SOFTNESS = 0.5
"""Exponent that makes weights of odds, so that they do not outweigh suspicion."""
MOST = 8.0
"""Largest product of the factors of traits."""


def weight_of(kind: str, preference: float, traits: Iterable[str]) -> float:
    """Return the weight of an edit, above 0 and at most 1.

    preference: its place among the edits of its kind, above 0 and at most 1.
    """
    factor = 1.0
    for trait in traits:
        factor *= TRAITS.get(trait, 1.0)
    return _weight(_odds(kind) * preference * min(factor, MOST))


def bounded_weight(kind: str, preference: float) -> float:
    """Return the highest weight that an edit may have, whatever its traits are."""
    return _weight(_odds(kind) * preference * MOST)


@cache
def highest_weight(kinds: Sequence[str]) -> float:
    """Return the highest weight that an edit of one of *kinds* may have."""
    return max(bounded_weight(kind, 1.0) for kind in kinds)


@cache
def _odds(kind: str) -> float:
    if kind in WITHOUT_FIGURES:
        return WITHOUT_FIGURES[kind]
    hits, edits = KINDS[kind]
    return (hits + PRIOR_HITS) / (edits + PRIOR_EDITS)


def _weight(odds: float) -> float:
    return float(min(1.0, (odds / BEST) ** SOFTNESS))
