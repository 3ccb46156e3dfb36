"""Fields of a resume record (a higher limit, a decision about an effect in doubt), and whether a
sleeping thread is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import RefusedError, UncagedError, UsageError

from ..door.effects import handled
from ..effect_kinds import handler_for
from ..state.observe import ThreadView
from ..state.undecided import require_decision

FLAGS = {
    "maxRounds": "--max-rounds",
    "maxSteps": "--max-steps",
    "maxCost": "--max-cost",
    "maxTokens": "--max-tokens",
    "maxSeconds": "--max-time",
    "maxJournalBytes": "--max-journal",
    "bundleSeconds": "--bundle-time",
}
UNITS = {"maxSeconds": "s", "bundleSeconds": "s", "maxJournalBytes": " bytes"}
MAX_NOTE_CHARACTERS = 100_000


def resume_fields(
    found: ThreadView, *, redo: bool, skip: bool, note: str | None, limits: Mapping[str, object]
) -> dict[str, object]:
    """Return the fields of the resume record.

    Raises:
        UsageError: the note is too long. RefusedError: a decision is missing, or the limit is no
            higher.
    """
    if note is not None and len(note) > MAX_NOTE_CHARACTERS:
        raise UsageError(
            f"the note has {len(note):,} characters; at most {MAX_NOTE_CHARACTERS:,} fit; put the rest into a file"
        )
    decided = {name: True for name, wanted in (("redo", redo), ("skip", skip)) if wanted}
    require_decision(
        found.summary.thread_id, found.summary.status, found.summary.undecided, decided
    )
    fields = {**limits, **({} if note is None else {"note": note}), **decided}
    _require_higher(found, fields)
    return fields


def is_due(records: Sequence[Mapping[str, Any]], now_ms: int) -> bool:
    """Whether a thread's last effect waits for a moment that has passed."""
    moment_ms = due_ms(records)
    return moment_ms is not None and moment_ms <= now_ms


def due_ms(records: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the moment for which a thread's last effect waits, or None."""
    intent = next(
        (record for record in reversed(records) if "seq" in record and "attempt" not in record),
        None,
    )
    effect = intent.get("intent") if intent is not None else None
    if intent is None or not isinstance(effect, Mapping) or len(effect) != 1:
        return None
    [(kind, body)] = effect.items()
    try:
        return handler_for(str(kind)).due_ms(handled(body), int(intent["timestamp"]))
    except UncagedError:  # no installed handler performs the kind
        return None


def _require_higher(found: ThreadView, fields: Mapping[str, object]) -> None:
    """Refuse to resume a thread at its limit without a higher one: it would stop at once."""
    end = found.end
    if end is None or end.get("end") != "limit" or "value" not in end:
        return
    name, value = str(end["limit"]), float(end["value"])
    limit = fields.get(name)
    if not isinstance(limit, int | float) or limit <= value:
        where = f"thread {found.summary.thread_id} is at its limit ({end.get('message')})"
        raise RefusedError(
            f"{where}; resume it with {FLAGS.get(name, name)} above {value:g}{UNITS.get(name, '')}"
        )
