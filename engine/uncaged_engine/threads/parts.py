"""Proof that the outcome of each ``all`` is what the lines of its parts say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_effects.all import checked, lineless, result_of

from ..journal import lines
from ..journal.blobs import Blobs
from ..journal.recover import History
from ..state.observe import parse_records


def find_difference(history: History, data: bytes, blobs: Blobs) -> str | None:
    """Return where the outcome of an ``all`` and the lines of its parts differ, in words; None if nowhere.

    Args:
        data: the whole lines of the journal.
    """
    made_up = int(history.start["forkFrom"]["seq"]) if (history.start.get("forkFrom") or {}).get("instead") else 0
    for body, step, parts in _steps_of_all(data, blobs):
        if step["seq"] != made_up and "outcome" in step and (problem := _compare(body, step["outcome"], parts)):
            return f"step {step['seq']} (all): {problem}"
    return None


def _steps_of_all(data: bytes, blobs: Blobs) -> Iterator[tuple[object, dict[str, Any], list[dict[str, Any]]]]:
    """Each finished step of the kind ``all``: the effect's body, the step's record and those of its parts."""
    intent = b""
    subs: list[bytes] = []
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        shape, _ = lines.shape_of(line)
        if shape == "intent":
            intent = line
        elif shape == "step" and lines.is_sub_step(line):
            subs.append(line)
        elif shape == "step":
            if intent and (body := _body_of_all(intent, blobs)) is not None:
                [step, *parts] = parse_records(b"".join([line, *subs]), blobs)
                yield body, step, parts
            intent, subs = b"", []


def _body_of_all(intent: bytes, blobs: Blobs) -> object:
    """The body of an ``all``; None for another kind. Nearly all intents are of another kind, and are not parsed."""
    if lines.blob_of(intent) is None and not lines.effect_of_intent(intent).startswith(b'{"all":'):
        return None
    [record] = parse_records(intent, blobs)
    return record["intent"].get("all")


def _compare(body: object, results: object, parts: list[dict[str, Any]]) -> str | None:
    effects = checked(body)
    if isinstance(effects, str) or not isinstance(body, Mapping):
        return f"it has an outcome, and could not be performed: {effects}"
    if not isinstance(results, list) or len(results) != len(effects) or not all(isinstance(result, Mapping) for result in results):
        return f"it has {len(effects)} parts, and its outcome is {_shown(results)}"
    seen: set[int] = set()
    for part in parts:
        index = part["sub"]
        if index in seen or not isinstance(index, int) or not 0 <= index < len(effects):
            return f"there is a line of part {index}{', a second one' if index in seen else ''}"
        seen.add(index)
        if result_of(part) != results[index]:
            return f"the line of part {index} holds {_shown(result_of(part))}, the outcome {_shown(results[index])}"
    for index, (kind, _) in enumerate(effects):
        if index not in seen and not lineless(results, body, index, kind):
            return f"the outcome holds {_shown(results[index])} for part {index}, which has no line"
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
