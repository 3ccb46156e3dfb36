"""The verb `answer`: answers the question of a waiting thread, and follows the thread."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from uncaged_bundles.errors import UsageError

from ..display.output import is_terminal, note
from ..display.started import follow_or_print
from ..inputs.files import read_text
from ..inputs.form import edit, fill, template
from ..inputs.options import detach_option, json_option, thread_argument, verbose_option
from ..inputs.parameters import parse_value
from ..runtime import open_engine

ANY_TEXT: Mapping[str, object] = {"type": "string"}


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


def converted(answer: object, question_record: Mapping[str, object]) -> object:
    """Convert the answer to the type of the question's schema."""
    if not isinstance(answer, str):
        return answer if answer is not None else ""
    if "fields" in question_record:
        return (
            parse_value("answer", answer, {"properties": {"answer": {"type": "object"}}})
            if answer.lstrip().startswith("{")
            else answer
        )
    return parse_value(
        "answer", answer, {"properties": {"answer": question_record.get("schema", ANY_TEXT)}}
    )


def ask(question_record: Mapping[str, object], thread_id: str, *, edited: bool) -> object:
    """Ask for the answer on the terminal or in the editor."""
    words = str(question_record.get("question", "what is the answer?"))
    fields = question_record.get("fields")
    if edited:
        return edit(
            str(question_record.get("prompt", words)), fields if isinstance(fields, Mapping) else {}
        )
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        answer = (
            shlex.quote(json.dumps(template(fields, "…"), ensure_ascii=False))
            if isinstance(fields, Mapping)
            else "TEXT"
        )
        raise UsageError(
            f"thread {thread_id} asks: {words}\nanswer with: uncaged-workflow answer {thread_id} {answer}"
        )
    from uncaged_models.prompts.prompt import HOW_TO_ANSWER

    note(words)
    if "prompt" in question_record:
        note(
            str(question_record["prompt"]).rpartition(f"\n{HOW_TO_ANSWER}\n")[0]
            or str(question_record["prompt"])
        )
    for name in ("problem", "worktree"):
        if name in question_record:
            note(f"{name}: {question_record[name]}")
    if isinstance(fields, Mapping):
        return fill(fields)
    return str(click.prompt(">", err=True, prompt_suffix=" "))
