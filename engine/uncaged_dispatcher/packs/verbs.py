"""Verbs of the command line that the rules of the built-in pack may call, as flows whose names
begin with ``@``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.records import dataclass

from ..calls import Call

VERB_MARK = "@"
"""Begins the name of a verb where a call has the name of a flow."""
HELP = "@help"
"""The overview of sentences, which the dispatcher itself prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbCall:
    """A verb that a sentence may call. parameters: texts, in the order of the command line."""

    parameters: tuple[str, ...] = ()
    example: str


VERBS: Mapping[str, VerbCall] = {
    HELP: VerbCall(example="what can you do"),
    "@conversation new": VerbCall(parameters=("name",), example="new conversation called budget"),
    "@conversation list": VerbCall(example="show my conversations"),
    "@conversation switch": VerbCall(
        parameters=("name",), example="switch to the conversation budget"
    ),
    "@conversation rename": VerbCall(
        parameters=("name",), example="rename this conversation to taxes"
    ),
    "@conversation delete": VerbCall(
        parameters=("name",), example="delete the conversation budget"
    ),
    "@pack list": VerbCall(example="which packs are there"),
    "@pack enable": VerbCall(parameters=("name",), example="enable the git pack"),
    "@pack disable": VerbCall(parameters=("name",), example="disable the pack notes"),
    "@model": VerbCall(parameters=("name",), example="use the model small"),
}


def is_verb(calls: Sequence[Call]) -> bool:
    """Return whether the calls are one verb; several, or one among flows, are refused as flows."""
    return len(calls) == 1 and calls[0].flow.startswith(VERB_MARK)


def verb_refusal(call: Call) -> str | None:
    """Return why a verb does not take a call's parameters, or None."""
    verb = VERBS.get(call.flow)
    if verb is None:
        return f"there is no verb {call.flow!r} for sentences"
    for name, value in call.params.items():
        if name not in verb.parameters:
            return f"{call.flow} has no parameter {name!r}"
        if not isinstance(value, str) or not value.strip():
            return f"{call.flow} takes a text for {name}, not {value!r}"
    return None


def verb_words(call: Call) -> tuple[list[str], list[str]]:
    """Return the words of a verb on the command line, without the mark, and its arguments."""
    names = VERBS[call.flow].parameters
    arguments = [str(call.params[name]) for name in names if name in call.params]
    return call.flow.removeprefix(VERB_MARK).split(), arguments
