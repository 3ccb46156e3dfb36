"""Where threads part: their finished steps in order, and the number of those that are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..state.observe import ThreadView
from .timeline import Row, Timeline

VOLATILE_KEYS = frozenset(("timestamp", "usage", "snapshot", "gitPack"))
"""Keys that may differ between two equal steps."""

Step = tuple[Mapping[str, object], Row]
"""A finished step: its record without volatile keys, and its row."""


def steps_of(view: ThreadView) -> list[Step]:
    """Return each finished step as record and row."""
    timeline = Timeline()
    found: list[Step] = []
    for record in view.records:
        row = timeline.add(record)
        if (
            row is not None
            and "seq" in record
            and "sub" not in record
            and row.mark in ("done", "failed")
        ):
            found.append(
                ({key: value for key, value in record.items() if key not in VOLATILE_KEYS}, row)
            )
    return found


def common_steps(threads: Sequence[Sequence[Step]]) -> int:
    """Return the number of steps from the start that are equal in all threads."""
    shortest = min(map(len, threads), default=0)
    return next(
        (
            number
            for number, steps in enumerate(zip(*threads, strict=False))
            if any(step[0] != steps[0][0] for step in steps)
        ),
        shortest,
    )
