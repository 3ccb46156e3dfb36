"""Two threads are laid side by side: how far they went together, and what each did after that."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_engine.threads.story import Row, Story

from . import json_output
from .output import Styled, result

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

OWN = frozenset(("timestamp", "usage", "snapshot"))
"""What two threads that went the same way may still have different."""
SHOWN_COLUMNS = 200


def show_futures(left: ThreadView, right: ThreadView, *, as_json: bool) -> None:
    """Print where two threads part and how each went on."""
    ours, theirs = steps_of(left), steps_of(right)
    together = alike(ours, theirs)
    ids = (left.summary.thread_id, right.summary.thread_id)
    if as_json:
        futures = {
            one: [row.detail for _, row in steps[together:]]
            for one, steps in zip(ids, (ours, theirs), strict=True)
        }
        json_output.document(
            {
                "together": together,
                "futures": futures,
                "ends": {ids[0]: left.end, ids[1]: right.end},
            }
        )
        return
    apart = together < max(len(ours), len(theirs))
    result(f"{together} step{'' if together == 1 else 's'} alike{', then:' if apart else ''}")
    for number, (mine, other) in enumerate(
        zip_longest(ours[together:], theirs[together:]), start=together + 1
    ):
        for thread_id, one in zip(ids, (mine, other), strict=True):
            said = "-" if one is None else f"{one[1].label}: {one[1].detail}"
            result(f"{number:>4}  ", Styled(thread_id, "cyan"), f"  {shorten(said, SHOWN_COLUMNS)}")
    for view in (left, right):
        said = f"{view.summary.status} {shorten(view.summary.message, SHOWN_COLUMNS)}"
        result(
            "end   " if view.end else "now   ", Styled(view.summary.thread_id, "cyan"), f"  {said}"
        )


def steps_of(view: ThreadView) -> list[tuple[Mapping[str, object], Row]]:
    """Each finished step, as record and as row."""
    story = Story()
    found: list[tuple[Mapping[str, object], Row]] = []
    for record in view.records:
        row = story.hear(record)
        if (
            row is not None
            and "seq" in record
            and "sub" not in record
            and row.mark in ("done", "failed")
        ):
            found.append(({key: value for key, value in record.items() if key not in OWN}, row))
    return found


def alike(
    ours: list[tuple[Mapping[str, object], Row]], theirs: list[tuple[Mapping[str, object], Row]]
) -> int:
    """How many steps from the first are the same."""
    pairs = zip(ours, theirs, strict=False)
    return next(
        (number for number, (mine, other) in enumerate(pairs) if mine[0] != other[0]),
        min(len(ours), len(theirs)),
    )
