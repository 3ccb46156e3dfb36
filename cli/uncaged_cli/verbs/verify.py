"""`verify` proves that this bundle with these outcomes gives this journal, or shows where it does not."""

from __future__ import annotations

import click

from ..checking import show_check
from ..display import jsonout
from ..display.screen import Styled, result
from ..given.arguments import json_option, thread_argument
from ..session import open_engine

EXIT_NOT_PROVED = 1


@click.command()
@thread_argument
@click.option("--on", metavar="HASH", help="THREAD is a flow: replay its past threads against another version of it.")
@json_option
def command(*, thread: str, on: str | None, as_json: bool) -> int:
    """Run the thread's bundle again over its journal, alone in a fresh sandbox, and compare every effect."""
    engine = open_engine()
    if on is not None:
        return show_check(engine, thread, engine.bundle(on).source, as_json=as_json)
    thread_id = engine.store.locate_thread(thread)[1]
    verdict = engine.verify(thread_id)
    if as_json:
        jsonout.document(
            {
                "threadId": thread_id,
                "ok": verdict.ok,
                "steps": verdict.steps,
                "sandbox": verdict.mechanism,
                "message": verdict.message,
            }
        )
    else:
        word = Styled("proved", "green") if verdict.ok else Styled("not proved", "red")
        result(f"{thread_id}: ", word, f", {verdict.steps} steps, sandbox {verdict.mechanism}{_message(verdict.message)}")
    return 0 if verdict.ok else EXIT_NOT_PROVED


def _message(text: str) -> str:
    return f": {text}" if text else ""
