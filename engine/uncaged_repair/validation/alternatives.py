"""Alternatives to a chosen patch: the other candidates that pass the whole suite, and the arguments
with which they behave differently.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_DIFFERENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Call on which the chosen edit and another passing edit differ. All fields are short text.

    call: the function with its arguments. chosen, other: the result or the exception of each.
    other_edit: the other edit in one line.
    """

    call: str
    chosen: str
    other: str
    other_edit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """Summary of the candidates that pass the whole suite, the chosen one included.

    passing: their number. groups: number of different behaviours among them. agreeing: number of
    those that behave like the chosen one, itself included. inputs: number of calls on which they
    were compared; 0 if they could not be. differences: at most MAX_DIFFERENCES.
    """

    passing: int = 1
    groups: int = 1
    agreeing: int = 1
    inputs: int = 0
    differences: tuple[Difference, ...] = ()


NO_ALTERNATIVES = Alternatives()
"""Summary for the only candidate that passes."""
