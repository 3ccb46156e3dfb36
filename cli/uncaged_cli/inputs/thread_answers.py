"""Answers of the person to the questions of waiting threads: typed, as text, or from the editor."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping

import click
from uncaged_bundles.errors import UsageError

from ..display.output import is_terminal, note
from .form import edit, fill, template
from .parameters import parse_value

ANY_TEXT: Mapping[str, object] = {"type": "string"}


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
