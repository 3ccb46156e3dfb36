"""Comparison of two threads: the steps that they have in common, and the rest side by side."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_engine.threads.timeline import Row, Timeline

from . import json_output
from .output import Styled, result

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

VOLATILE_KEYS = frozenset(("timestamp", "usage", "snapshot"))
"""Keys that may differ between two equal steps."""
SHOWN_COLUMNS = 200


def show_thread_diff(left: ThreadView, right: ThreadView, *, as_json: bool) -> None:
    """Print the number of equal steps, then the remaining steps of both threads."""
    left_steps, right_steps = steps_of(left), steps_of(right)
    together = common_steps(left_steps, right_steps)
    ids = (left.summary.thread_id, right.summary.thread_id)
    if as_json:
        futures = {
            one: [row.detail for _, row in steps[together:]]
            for one, steps in zip(ids, (left_steps, right_steps), strict=True)
        }
        json_output.document(
            {
                "together": together,
                "futures": futures,
                "ends": {ids[0]: left.end, ids[1]: right.end},
            }
        )
        return
    apart = together < max(len(left_steps), len(right_steps))
    result(f"{together} step{'' if together == 1 else 's'} alike{', then:' if apart else ''}")
    for number, (mine, other) in enumerate(
        zip_longest(left_steps[together:], right_steps[together:]), start=together + 1
    ):
        for thread_id, one in zip(ids, (mine, other), strict=True):
            text = "-" if one is None else f"{one[1].label}: {one[1].detail}"
            result(f"{number:>4}  ", Styled(thread_id, "cyan"), f"  {shorten(text, SHOWN_COLUMNS)}")
    for view in (left, right):
        text = f"{view.summary.status} {shorten(view.summary.message, SHOWN_COLUMNS)}"
        result(
            "end   " if view.end else "now   ", Styled(view.summary.thread_id, "cyan"), f"  {text}"
        )


def steps_of(view: ThreadView) -> list[tuple[Mapping[str, object], Row]]:
    """Return each finished step as record and row."""
    timeline = Timeline()
    found: list[tuple[Mapping[str, object], Row]] = []
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


def common_steps(
    left_steps: list[tuple[Mapping[str, object], Row]],
    right_steps: list[tuple[Mapping[str, object], Row]],
) -> int:
    """Return the number of equal steps from the start."""
    pairs = zip(left_steps, right_steps, strict=False)
    return next(
        (number for number, (mine, other) in enumerate(pairs) if mine[0] != other[0]),
        min(len(left_steps), len(right_steps)),
    )
