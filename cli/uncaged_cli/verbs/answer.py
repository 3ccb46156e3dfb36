"""The verb `answer`: answers the question of a waiting thread, and follows the thread."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from uncaged_bundles.errors import UsageError

from ..display.started import follow_or_print
from ..inputs.files import read_text
from ..inputs.options import detach_option, json_option, thread_argument, verbose_option
from ..inputs.stores import shared_option
from ..inputs.thread_answers import ask, converted
from ..runtime import open_engine


@click.command()
@thread_argument
@click.argument("value", required=False, metavar="[TEXT|-]")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the answer from this file.",
)
@click.option("--edit", "edited", is_flag=True, help="Write the answer in your editor.")
@verbose_option
@detach_option
@shared_option
@json_option
def command(
    *,
    thread: str,
    value: str | None,
    file: Path | None,
    edited: bool,
    verbose: bool,
    detach: bool,
    as_json: bool,
) -> int:
    """Answer the question of the waiting THREAD, and follow the thread. Without TEXT, a terminal
    asks for the answer.

    For a number, a boolean, a list or a mapping, TEXT is JSON. For a role, TEXT is JSON with the
    role's fields, a text with a ```json block, one of the choices of a field, or any text if
    exactly one field takes free text.

    \b
    Examples:
      uncaged-workflow answer latest yes
      uncaged-workflow answer latest approved
      uncaged-workflow answer latest --file review.md
      uncaged-workflow answer latest '{"status": "approved", "issues": []}'
    """
    from uncaged_engine.threads.answering import question

    engine = open_engine()
    view = engine.thread(thread)
    thread_id, status = view.summary.thread_id, view.summary.status
    question_record = question(view.records) or {}
    answer: object = read(value, file)
    if answer is None and status == "waiting":
        answer = ask(question_record, thread_id, edited=edited)
    engine.answer(thread_id, converted(answer, question_record))
    return follow_or_print(
        engine,
        thread_id,
        detach=detach,
        as_json=as_json,
        verbose=verbose,
        known_records=len(view.records),
    )


def read(value: str | None, file: Path | None) -> str | None:
    """Return the answer of the command line: the argument, standard input, or a file."""
    if file is not None and value is not None:
        raise UsageError("give TEXT or --file, not both")
    if file is not None:
        return read_text(file)
    return sys.stdin.read().removeprefix("\ufeff") if value == "-" else value
