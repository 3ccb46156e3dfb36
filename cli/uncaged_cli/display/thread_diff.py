"""Comparison of two threads: the steps that they have in common, and the rest side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_engine.threads.parting import Step, common_steps, steps_of
from uncaged_engine.threads.thread_documents import comparison_document

from . import json_output
from .output import Styled, result

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

SHOWN_COLUMNS = 200


def show_thread_diff(left: ThreadView, right: ThreadView, *, as_json: bool) -> None:
    """Print the number of equal steps, then the remaining steps of both threads."""
    left_steps, right_steps = steps_of(left), steps_of(right)
    together = common_steps([left_steps, right_steps])
    ids = (left.summary.thread_id, right.summary.thread_id)
    if as_json:
        json_output.document(comparison_document([(left, left_steps), (right, right_steps)]))
        return
    apart = together < max(len(left_steps), len(right_steps))
    result(f"{together} step{'' if together == 1 else 's'} alike{', then:' if apart else ''}")
    show_futures(ids, [left_steps[together:], right_steps[together:]], together)
    for view in (left, right):
        text = f"{view.summary.status} {shorten(view.summary.message, SHOWN_COLUMNS)}"
        result(
            "end   " if view.end else "now   ", Styled(view.summary.thread_id, "cyan"), f"  {text}"
        )


def show_futures(names: Sequence[str], futures: Sequence[Sequence[Step]], kept: int) -> None:
    """Print the steps of several threads after the first *kept*, number by number."""
    for number, steps in enumerate(zip_longest(*futures), start=kept + 1):
        for name, one in zip(names, steps, strict=True):
            text = "-" if one is None else f"{one[1].label}: {one[1].detail}"
            result(f"{number:>4}  ", Styled(name, "cyan"), f"  {shorten(text, SHOWN_COLUMNS)}")
