"""Options of matching: which lengths, optional parts and repetitions are tried."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from uncaged_bundles.records import dataclass

MAX_READINGS: Final = 10_000
"""Most readings of one sentence that are listed."""


class Captures(StrEnum):
    """Lengths of text captures that are tried: all, or the shortest that leads to a reading."""

    EXHAUSTIVE = "exhaustive"
    SHORTEST = "shortest"


class Optionals(StrEnum):
    """Choices at an optional part: both, or one first and the other only without a reading."""

    EXHAUSTIVE = "exhaustive"
    TAKE = "take"
    SKIP = "skip"


class Repeats(StrEnum):
    """Counts of a repetition: all, or the most or the fewest that lead to a reading."""

    EXHAUSTIVE = "exhaustive"
    GREEDY = "greedy"
    RELUCTANT = "reluctant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Options of `match`."""

    captures: Captures = Captures.EXHAUSTIVE
    optionals: Optionals = Optionals.EXHAUSTIVE
    repeats: Repeats = Repeats.EXHAUSTIVE
