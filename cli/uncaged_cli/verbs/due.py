"""The verb `due`: starts schedules that are due, and resumes threads whose sleep has ended."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@shared_option
@json_option
def command(as_json: bool) -> int:
    """Start each schedule that is due, resume each thread whose sleep has ended, and follow none;
    for a timer, which `schedule install` sets up. A running `serve` does the same.

    A problem of one schedule or thread stops no other; the exit code is 1 then.
    """
    from uncaged_schedules.due import due

    report = due(open_engine())
    for problem in report.problems:
        subject = f"schedule {problem.schedule}: " if problem.schedule is not None else ""
        note(Styled("warning: ", "yellow"), f"{subject}{problem.message}")
    if as_json:
        json_output.document(report.document())
        return 1 if report.problems else 0
    for run in report.started:
        earlier = f", once for its last {run.earlier + 1} due times" if run.earlier else ""
        note(f"schedule {run.schedule} started{earlier}:")
        result(str(run.thread_id))
    for run in report.skipped:
        missed = (
            f"{run.earlier + 1} missed due times were" if run.earlier else "a missed due time was"
        )
        note(f"schedule {run.schedule}: {missed} skipped")
    for thread in report.resumed:
        result(thread)
    return 1 if report.problems else 0
