"""Recorded results of called flows, against those of a trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from uncaged_engine.api import ThreadView
from uncaged_engine.door.effects import handled
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services.trials import TrialEffect
from uncaged_models.conversation import clean

from .linking import RanFlow, Recorded
from .proving import differences_of

__all__ = ["model_result", "recorded_outcome", "result_differences"]


def result_differences(ran: RanFlow, outcome: Outcome | None, where: str) -> list[str]:
    """Return how the outcome of a step in a trial differs from the recorded result of its call.

    Args:
        where: name of the result.
    """
    match outcome:
        case Answer(fields={"outcome": answer}) if ran.kind == "llm" and ran.result is not None:
            found = model_result(answer)
            recorded = {"text": ran.result.text, "data": ran.result.data}
            return differences_of(recorded, {"text": found.text, "data": found.data}, where)
        case Answer(fields={"outcome": {"success": success, "message": message, "data": data}}):
            if ran.result is not None:
                recorded = {"message": ran.result.text, "data": ran.result.data}
                return differences_of(recorded, {"message": message or "", "data": data}, where)
            summary = {"success": success, "message": message or "", "data": data}
            return _differs_from_head(ran, summary, where)
        case Failure(error=error):
            return [f"{where} was a success, and is a failure now: {error.get('message')}"]
        case _:
            return [f"{where} is missing"]


def _differs_from_head(ran: RanFlow, summary: Mapping[str, object], where: str) -> list[str]:
    """Compare with the digest of the text that the agent got, or with its head if it was cut."""
    if ran.characters < 0:
        return [f"{where} was not recorded"]
    text = clean(json.dumps(summary, ensure_ascii=False))
    digest = blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
    if digest == ran.digest:
        return []
    if len(text) > ran.characters and text.startswith(ran.head):
        return [
            f"{where} was too long for the agent: only its first characters are known, and equal"
        ]
    return [f"{where} differs from the recorded one, which began {ran.head[:60]!r}"]


def recorded_outcome(thread: ThreadView, effect: TrialEffect) -> Outcome | None:
    """Return the outcome of the same effect at the same place of a thread."""
    intents = {record["seq"]: record["intent"] for record in thread.records if "intent" in record}
    intent = intents.get(effect.seq)
    body = intent.get(effect.kind) if isinstance(intent, Mapping) else None
    if effect.part is not None or handled(body) != effect.body:
        return None
    for record in thread.records:
        if record.get("seq") == effect.seq and "sub" not in record:
            if isinstance(record.get("error"), Mapping):
                return Failure(error=record["error"])
            if "outcome" in record:
                return Answer(fields={"outcome": record["outcome"]})
    return None


def model_result(outcome: object) -> Recorded:
    """Return the result of a model as task flows see it."""
    if isinstance(outcome, Mapping) and "text" in outcome and set(outcome) <= {"text", "data"}:
        return Recorded(text=str(outcome["text"]), data=outcome.get("data"))
    if isinstance(outcome, str):
        return Recorded(text=outcome, data=None)
    return Recorded(text=json.dumps(outcome, ensure_ascii=False), data=outcome)
