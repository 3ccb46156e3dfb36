"""Answers of the person at the terminal to the questions of requests."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click
from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import RefusedError, UsageError

from ..display.output import is_terminal, note
from ..display.sentences import run_command, spell_call
from .thread_answers import ask, converted


def respond(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask the question of a request and return the answer.

    Raises:
        RefusedError: there is no terminal to ask on, or the answer was no.
    """
    match question["kind"]:
        case "confirm":
            return _confirm(question)
        case "thread":
            return _answer_thread(question)
        case _:
            return _choose(question)


def _confirm(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask whether to run, edit or cancel what was understood."""
    if not can_ask():
        raise RefusedError(
            f"{question['question']} There is no terminal to ask on; add --yes to run it; nothing was run"
        )
    answer = click.prompt(
        str(question["question"]),
        type=click.Choice(["run", "edit", "cancel"]),
        default="cancel",
        err=True,
    )
    if answer == "run":
        return {"run": True}
    if answer == "edit":
        return {"calls": _edited(question["calls"])}
    raise RefusedError("cancelled; nothing was run")


def _edited(calls: object) -> object:
    text = click.edit(json.dumps(calls, indent=2, ensure_ascii=False), extension=".json")
    if text is None:
        raise RefusedError("the editor was closed without saving; nothing was run")
    try:
        return json.loads(text)
    except ValueError as exc:
        raise UsageError(f"the edited calls are not JSON: {exc}; nothing was run") from exc


def _choose(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask for one of several readings, and whether to remember the choice."""
    note(clean_line(str(question["question"])))
    for choice in question["choices"]:
        meaning = ", then ".join(map(spell_call, choice["calls"]))
        note(f"  {clean_line(choice['id'])}: {clean_line(choice['label'])}  ({meaning})")
    if not can_ask():
        raise RefusedError(_unasked(question))
    ids = [str(choice["id"]) for choice in question["choices"]]
    chosen = click.prompt("Which one", type=click.Choice(ids), err=True)
    remember = question["kind"] == "collision" and click.confirm(
        "Remember this choice?", default=False, err=True
    )
    return {"choice": chosen, "remember": remember}


def _answer_thread(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask the question of a waiting thread until the answer has its type."""
    thread = str(question["threadId"])
    while True:
        offered = question.get("choices", ())
        for choice in offered:
            note(f"  {choice['id']}: {clean_line(str(choice['label']))}")
        text = ask(question, thread, edited=False)
        # by its words first: they may be another one's number
        for key in ("label", "id"):
            for choice in offered:
                if text == choice[key]:
                    return {"choice": choice["id"]}
        try:
            return {"value": converted(text, question)}
        except UsageError as problem:
            question = {**question, "problem": str(problem)}


def _unasked(question: Mapping[str, Any]) -> str:
    """Return the error for a question without a terminal: what is offered, and how to choose."""
    offered = "; ".join(f"{choice['id']}: {choice['label']}" for choice in question["choices"])
    calls = question["choices"][0]["calls"]
    # a single call has a command; verbs and several calls have none
    chosen = (
        f"run the one that is meant, as in `{run_command(calls[0])}`"
        if len(calls) == 1 and not calls[0]["flow"].startswith("@")
        else "write the sentence so that it has one meaning"
    )
    return clean_line(
        f"{question['question']} ({offered}) There is no terminal to ask on; {chosen}; nothing was run"
    )


def can_ask() -> bool:
    """Return whether there is a terminal to ask on."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)
