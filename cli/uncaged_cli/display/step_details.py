"""Details of one step: the answer word for word, its data, and its usage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from uncaged_engine.threads.timeline import Record

from .durations import spell
from .progress import spell_usage

INDENT = " " * 8


def step_details(record: Record) -> Iterator[str]:
    """Yield the details of a record; nothing if its row already shows everything."""
    if "control" in record:
        return  # the `answer` of a wait is no text: it says what kind is wanted
    meta = record.get("meta")
    for text in (record.get("content"), record.get("answer")):
        if isinstance(text, str) and not (isinstance(meta, Mapping) and is_same_json(text, meta)):
            yield from (f"{INDENT}{line}" for line in text.splitlines())
    if isinstance(meta, Mapping) and meta:
        yield from (
            f"{INDENT}{line}"
            for line in json.dumps(meta, ensure_ascii=False, indent=2).splitlines()
        )
    error = record.get("error")
    holder = error if isinstance(error, Mapping) else record
    if used := spell_step_usage(holder.get("usage")):
        yield f"{INDENT}used: {used}"


def is_same_json(text: str, meta: Mapping[str, object]) -> bool:
    """Check whether *text* is the JSON of *meta* and nothing else."""
    try:
        return bool(json.loads(text) == meta)
    except ValueError:
        return False


def spell_step_usage(usage: object) -> str:
    """Format the tokens, cost, turns, duration and model of one step."""
    if not isinstance(usage, Mapping):
        return ""
    turns, seconds, model = usage.get("turns"), usage.get("seconds"), usage.get("model")
    parts = [spell_usage(usage)]
    if isinstance(turns, int) and turns:
        parts.append(f"{turns} turn{'' if turns == 1 else 's'}")
    if isinstance(seconds, int | float) and seconds:
        parts.append(spell(round(seconds * 1000)))
    if isinstance(model, str):
        parts.append(model)
    return ", ".join(part for part in parts if part)
