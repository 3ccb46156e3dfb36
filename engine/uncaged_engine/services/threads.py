"""Threads, read from their files: the view, the open question and the check of its answer, effects
in a few words, records of a part of a journal, and the end of a worker's drive.
"""

from __future__ import annotations

from ..door.effects import Cancel
from ..journal.labels import effect_label, intended
from ..state.children import open_children
from ..state.observe import ThreadView, parse_records, summarise
from ..threads.answering import check_answer, question, question_number
from ..threads.following import records_between, wait_until_left
from ..threads.notifications import mark_seen
from ..threads.parting import Step, common_steps, steps_of
from ..threads.step_traces import StepTrace, traces_of

__all__ = [
    "Cancel",
    "Step",
    "StepTrace",
    "ThreadView",
    "check_answer",
    "common_steps",
    "effect_label",
    "intended",
    "mark_seen",
    "open_children",
    "parse_records",
    "question",
    "question_number",
    "records_between",
    "steps_of",
    "summarise",
    "traces_of",
    "wait_until_left",
]
