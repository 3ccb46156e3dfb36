"""Answers of the person at the terminal to questions about a sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click
from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import RefusedError, UsageError

from ..display.output import is_terminal, note
from ..display.sentences import spell_call


def respond(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask the question of a request and return the answer.

    Raises:
        RefusedError: there is no terminal to ask on, or the answer was no.
    """
    return _confirm(question) if question["kind"] == "confirm" else _choose(question)


def _confirm(question: Mapping[str, Any]) -> Mapping[str, object]:
    """Ask whether to run, edit or cancel what was understood."""
    if not _is_attended():
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
    if not _is_attended():
        raise RefusedError(
            "there is no terminal to ask on; write the sentence so that it has one meaning; nothing was run"
        )
    ids = [str(choice["id"]) for choice in question["choices"]]
    chosen = click.prompt("Which one", type=click.Choice(ids), err=True)
    remember = question["kind"] == "collision" and click.confirm(
        "Remember this choice?", default=False, err=True
    )
    return {"choice": chosen, "remember": remember}


def _is_attended() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)
