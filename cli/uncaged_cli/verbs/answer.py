"""`answer` tells a waiting thread what it asked a person, and follows it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
from uncaged_bundles.errors import UsageError

from .. import jsonout
from ..arguments import detach_option, json_option, thread_argument
from ..follow import follow
from ..parameters import parse_value
from ..screen import is_terminal, note, result
from ..session import open_engine

ANY_TEXT: Mapping[str, object] = {"type": "string"}


@click.command()
@thread_argument
@click.argument("value", required=False, metavar="[TEXT]")
@detach_option
@json_option
def command(*, thread: str, value: str | None, detach: bool, as_json: bool) -> int:
    """Answer the question that THREAD waits with, and follow it. On a terminal the question is asked when TEXT is missing.

    Where the question wants a number, a truth value, a list or a mapping, TEXT is JSON.
    """
    from uncaged_engine.answering import question

    engine = open_engine()
    view = engine.thread(thread)
    thread_id, status = view.summary.thread_id, view.summary.status
    asked = question(view.records) or {}
    if value is None and status == "waiting":
        value = ask(str(asked.get("question", "what is the answer?")), thread_id)
    engine.answer(thread_id, parse_value("answer", value or "", {"properties": {"answer": asked.get("schema", ANY_TEXT)}}))
    if not detach:
        return follow(engine, thread_id, as_json=as_json, known_records=len(view.records))
    if as_json:
        jsonout.document({"threadId": thread_id})
    else:
        result(thread_id)
    return 0


def ask(question: str, thread_id: str) -> str:
    """Ask the person who sits here."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"thread {thread_id} asks: {question}\nsay it: uncaged-workflow answer {thread_id} TEXT")
    note(question)
    return str(click.prompt(">", err=True, prompt_suffix=" "))
