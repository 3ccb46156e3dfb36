"""Proposal to make a flow of what the agent of a thread did. Nothing is saved unasked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .catalog import is_installed
from .display.output import is_terminal, next_step, note
from .inputs.stores import words_of_store
from .main import run

if TYPE_CHECKING:
    from uncaged_bundles.ids import ThreadId
    from uncaged_engine.api import Engine, ThreadView

VERB = "capture"


def propose_capture(
    engine: Engine, thread_id: ThreadId, *, wanted: bool = False, asks: bool = True
) -> None:
    """Ask on a terminal whether a flow is made of what an agent did, and make it; elsewhere print
    the command. Nothing is said of a thread without success, or without an agent's trace.

    Args:
        wanted: the person asked for it; else the config decides. asks: whether a question may be
            asked here.
    """
    if not is_installed(VERB) or not (wanted or engine.config.capture == "propose"):
        return
    view = engine.thread(thread_id)
    if not has_succeeded(view):
        return
    if not has_trace(view):
        if wanted:
            note("no flow can be made: the agent named none of its tool calls")
        return
    words = [VERB, thread_id]
    if not (asks and is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        next_step(f"uncaged-workflow {' '.join(words)}")
        return
    if click.confirm("Make a flow of what the agent did?", default=False, err=True):
        run([*words, *words_of_store()])
    else:
        note("nothing was saved")


def has_succeeded(view: ThreadView) -> bool:
    return view.summary.status == "completed" and view.summary.success is not False


def has_trace(view: ThreadView) -> bool:
    """Tell whether a step of a role keeps what its agent did."""
    return any("role" in record and "trace" in record for record in view.records)
