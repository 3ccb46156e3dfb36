"""`answer` tells a waiting thread what it asked a person, and follows it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.follow import follow
from ..display.output import is_terminal, note, result
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
    help="The answer stands in this file.",
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
    """Answer the question that THREAD waits with, and follow it. On a terminal the question is
    asked when TEXT is missing.

    Where the question wants a number, a truth value, a list or a mapping, TEXT is JSON. A role's
    question takes JSON that fits its fields, a text with a ```json block in it, one word that a
    field's choices have, or a text where exactly one field takes any text.

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
    asked = question(view.records) or {}
    said: object = read(value, file)
    if said is None and status == "waiting":
        said = ask(asked, thread_id, edited=edited)
    engine.answer(thread_id, typed(said, asked))
    if not detach:
        return follow(
            engine, thread_id, as_json=as_json, verbose=verbose, known_records=len(view.records)
        )
    if as_json:
        json_output.document({"threadId": thread_id})
    else:
        result(thread_id)
    return 0


def read(value: str | None, file: Path | None) -> str | None:
    """The answer as it was given: a word of the command, standard input, or a file."""
    if file is not None and value is not None:
        raise UsageError("say TEXT or --file, not both")
    if file is not None:
        return read_text(file)
    return sys.stdin.read().removeprefix("\ufeff") if value == "-" else value


def typed(said: object, asked: Mapping[str, object]) -> object:
    """The answer as the question's schema wants it."""
    if not isinstance(said, str):
        return said if said is not None else ""
    if "fields" in asked:
        return (
            parse_value("answer", said, {"properties": {"answer": {"type": "object"}}})
            if said.lstrip().startswith("{")
            else said
        )
    return parse_value("answer", said, {"properties": {"answer": asked.get("schema", ANY_TEXT)}})


def ask(asked: Mapping[str, object], thread_id: str, *, edited: bool) -> object:
    """Ask the person who sits here."""
    words = str(asked.get("question", "what is the answer?"))
    fields = asked.get("fields")
    if edited:
        return edit(str(asked.get("prompt", words)), fields if isinstance(fields, Mapping) else {})
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        said = (
            shlex.quote(json.dumps(template(fields, "…"), ensure_ascii=False))
            if isinstance(fields, Mapping)
            else "TEXT"
        )
        raise UsageError(
            f"thread {thread_id} asks: {words}\nsay it: uncaged-workflow answer {thread_id} {said}"
        )
    from uncaged_models.prompts.prompt import HOW_TO_ANSWER

    note(words)
    if "prompt" in asked:
        note(str(asked["prompt"]).rpartition(f"\n{HOW_TO_ANSWER}\n")[0] or str(asked["prompt"]))
    for name in ("problem", "worktree"):
        if name in asked:
            note(f"{name}: {asked[name]}")
    if isinstance(fields, Mapping):
        return fill(fields)
    return str(click.prompt(">", err=True, prompt_suffix=" "))
