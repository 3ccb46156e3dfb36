"""Output about sentences: what was understood, what a result offers, a miss, records of a
conversation.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uncaged_bundles.clean import clean_line, shorten

from .output import PROGRAM, Piece, Styled, next_step, note, result

Document = Mapping[str, Any]
VALUE_COLUMNS = 80
SHOWN_PATTERNS = 3


def spell_call(call: Document) -> str:
    """Return a call as a flow with its parameters."""
    params = call.get("params") or {}
    words = (
        f"{name}={shorten(spell_value(value), VALUE_COLUMNS)}" for name, value in params.items()
    )
    return clean_line(" ".join([str(call["flow"]), *words]))


def spell_request(request: Document) -> str:
    """Return a request's sentence, or its call."""
    return spell_call(request["call"]) if "call" in request else clean_line(str(request["text"]))


def run_command(call: Document) -> str:
    """Return the command that runs a call in the current conversation."""
    params = call.get("params") or {}
    words = [
        f"--param {shlex.quote(f'{name}={spell_value(value)}')}" for name, value in params.items()
    ]
    return " ".join([PROGRAM, "action", shlex.quote(str(call["flow"])), *words])


def understood(reading: Document) -> Sequence[Piece]:
    """Return the line that says how a sentence was understood: flows, parameters, tier."""
    calls = ", then ".join(map(spell_call, reading["calls"]))
    rule = clean_line(str(reading.get("rule") or ""))
    how = f"  ({reading['by']}{f': {rule}' if rule else ''})"
    return Styled("understood: ", "bright_black"), calls, Styled(how, "bright_black")


def show_result(ended: Document) -> None:
    """Print what a result has beside its thread's own output: display text, choices, problems."""
    if ended.get("display"):
        result(str(ended["display"]))
    for choice in ended.get("choices", ()):
        result(f"{clean_line(choice['id'])}: {clean_line(choice['label'])}")
        next_step(run_command(choice["call"]))
    for problem in ended.get("problems", ()):
        note(Styled("warning: ", "yellow"), f"the flow's result: {problem}")


def show_miss(details: Document) -> None:
    """Print the next steps after a sentence that no tier read."""
    for reason in details.get("refused", ()):
        note(f"  {clean_line(str(reason))}")
    if details.get("corrected"):
        next_step(f"{PROGRAM} do {shlex.quote(details['corrected'])}")
    if details.get("enable"):
        next_step(str(details["enable"]))
    for near in details.get("nearest", ()):
        patterns = "; ".join(near["patterns"][:SHOWN_PATTERNS])
        note(f"  {clean_line(near['flow'])}: {clean_line(patterns)}")


def record_lines(record: Document) -> Iterator[Sequence[Piece]]:
    """Yield the lines for one record of a conversation, as they were shown when it was written."""
    number = Styled(f"{record['seq']:>5}  ", "bright_black")
    match record:
        case {"request": {"text": str()} | {"call": Mapping()} as request}:
            yield number, Styled(spell_request(request), "cyan")
        case {"reading": {"calls": list()} as reading}:
            yield number, *understood(reading)
        case {"translation": {"threadId": str(thread)}}:
            yield number, Styled(f"a model is asked in thread {clean_line(thread)}", "bright_black")
        case {"question": {"question": str(question)}}:
            yield number, clean_line(question)
        case {"answer": {"value": answer}} | {"answer": answer}:
            yield number, f"answered: {clean_line(spell_value(answer))}"
        case {"thread": {"threadId": str(thread)}}:
            yield number, Styled(f"thread {clean_line(thread)}", "bright_black")
        case {"cancel": why}:
            yield number, Styled(f"cancelled by {clean_line(str(why))}", "yellow")
        case {"result": Mapping() as ended}:
            colour = "green" if ended.get("success") else "red"
            status = clean_line(str(ended.get("status")))
            failed = status == "completed" and not ended.get("success")
            word = Styled("unsuccessful" if failed else status, colour)
            yield number, word, f": {clean_line(str(ended.get('message', '')))}"
            if ended.get("display"):
                yield (str(ended["display"]),)
        case {"feedback": {"rating": rating, **more}}:
            comment = f": {clean_line(str(more['comment']))}" if "comment" in more else ""
            yield number, f"feedback: {clean_line(str(rating))}{comment}"
        case {"settings": Mapping() as changed}:
            yield number, f"settings: {clean_line(spell_value(changed))}"
        case _:
            pass


def spell_value(value: object) -> str:
    """Return a value as a person writes it: text as it is, else JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
