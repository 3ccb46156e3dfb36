"""Timeline of a thread: rows for people, made from its records in order, without output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from uncaged_bundles.clean import clean_line

from ..journal.labels import effect_label, intended

Record = Mapping[str, object]
Mark = Literal["done", "failed", "void", "attempt", "control"]

PROSE = ("summary", "reason", "message", "error")
"""Keys of a meta whose text is shown without its key, before the rest."""

MAX_TEXT_CHARACTERS = 20_000
"""As much of a text as a row may show."""

CONTROL_TEXTS = ("message", "question", "note", "value", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Row of the timeline: a finished step, or an event of the thread."""

    mark: Mark
    seq: str
    label: str
    detail: str
    duration_ms: int | None
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStep:
    """Effect that is being performed."""

    seq: int
    label: str
    kind: str
    body: object
    started_ms: int
    attempt: int = 1


class Timeline:
    """State of a thread after the records added so far.

    last_outside: the last step whose outcome came from outside of the bundle; a fork before it can
    take another course, a later one cannot. 0: none. healed: a step of a web flow used another
    element than the recorded one.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.last_outside = 0
        self.healed = False
        self.open: OpenStep | None = None
        self.last_void = ""
        self.is_paused = False
        self.wait: Record = {}
        self.end: Record | None = None

    def add(self, record: Record) -> Row | None:
        """Process the next record; return the row that it completes."""
        if "format" in record:
            return None
        if "end" in record:
            self.end = record
            return None
        if "control" in record:
            return self._add_control(record)
        if "intent" in record:
            self._add_intent(record)
            return None
        if "attempt" in record:
            return self._add_attempt(record)
        return self._add_void(record) if "void" in record else self._add_step(record)

    def _add_intent(self, record: Record) -> None:
        kind, body = intended(record["intent"])
        self.end, self.last_void = None, ""
        self.open = OpenStep(
            seq=_whole(record.get("seq")),
            label=effect_label(kind, body),
            kind=kind,
            body=body,
            started_ms=_whole(record.get("timestamp")),
        )

    def _add_attempt(self, record: Record) -> Row:
        attempt = _whole(record.get("attempt"))
        if self.open is not None:
            self.open = replace(self.open, attempt=attempt)
        detail = _first_text(record, ("message", "problem", "error", "because"))
        # of the rejected answer, or of the attempt that begins
        what = "unusable answer" if "answer" in record else f"attempt {attempt}"
        return self._row(
            "attempt", record, self._label(record), f"{what}{': ' if detail else ''}{detail}"
        )

    def _add_control(self, record: Record) -> Row | None:
        word = str(record["control"])
        if word == "paths" or "notified" in record:
            return None  # for the next script, or the next process that would notify
        self.wait = record if word == "wait" else {}
        self.is_paused = word == "pause"
        if word == "resume":
            self.end, self.last_void = None, ""
            if self.open is not None:
                self.open = replace(self.open, started_ms=_whole(record.get("timestamp")))
        return self._row("control", record, word, _first_text(record, CONTROL_TEXTS), timed=False)

    def _add_void(self, record: Record) -> Row:
        detail = _first_text(record, ("message",))
        if self.is_paused:  # by a person: its word is not about the environment
            return self._row("void", record, self._label(record), detail)
        self.last_void = str(record["void"])
        return self._row(
            "void", record, self._label(record), f"{self.last_void}{': ' if detail else ''}{detail}"
        )

    def _add_step(self, record: Record) -> Row:
        label = str(record["role"]) if "role" in record else self._label(record)
        if "error" in record:
            row = self._row("failed", record, label, _error_text(record["error"]))
        elif "role" in record:
            row = self._row("done", record, label, role_summary(record))
        else:
            row = self._row("done", record, label, value_summary(record.get("outcome")))
        if "sub" not in record:
            self.steps, self.open, self.last_void = self.steps + 1, None, ""
            outcome = record.get("outcome")
            self.healed |= isinstance(outcome, Mapping) and "healed" in outcome
            if _is_from_outside(record):
                self.last_outside = _whole(record.get("seq"))
        return row

    def _row(
        self, mark: Mark, record: Record, label: str, detail: str, *, timed: bool = True
    ) -> Row:
        sub = f".{record['sub']}" if "sub" in record else ""
        started = self.open.started_ms if self.open is not None and timed else None
        return Row(
            mark=mark,
            seq=f"{record['seq']}{sub}" if "seq" in record else "",
            label=_one_line(label),
            detail=_one_line(detail),
            duration_ms=_whole(record.get("timestamp")) - started
            if started is not None and "timestamp" in record
            else None,
            by=_one_line(record.get("by", "")),
        )

    def _label(self, record: Record) -> str:
        if self.open is None:
            return "step"
        number, body = record.get("sub"), self.open.body
        inner = body.get("effects") if isinstance(body, Mapping) else None
        if isinstance(number, int) and isinstance(inner, list) and 0 <= number < len(inner):
            return effect_label(*intended(inner[number]))
        return self.open.label


def _is_from_outside(record: Record) -> bool:
    """Whether another try could have another outcome; a refusal by policy or contract cannot."""
    error = record.get("error")
    return record.get("by") != "bundle" and not (
        isinstance(error, Mapping) and error.get("kind") in ("policy", "yield")
    )


def role_summary(record: Record) -> str:
    """Return one line for a role's step: its status and the rest of its meta, or the answer's first
    line.
    """
    meta = record.get("meta")
    if not isinstance(meta, Mapping) or not meta:
        return _first_line(str(record.get("content", "")))
    status = _one_line(meta.get("status", ""))
    items = sorted(
        ((str(key), value) for key, value in meta.items() if key != "status"),
        key=lambda item: item[0] not in PROSE,
    )
    rest = [text for key, value in items if (text := _item_summary(key, value))]
    return ": ".join(
        part for part in (status, "; ".join(text.rstrip(".") for text in rest)) if part
    ) or _first_line(str(record.get("content", "")))


def value_summary(value: object) -> str:
    """Return one line for an outcome."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        if isinstance(healed := value.get("healed"), Mapping):
            return clean_line(f"healed: {healed.get('from')} → {healed.get('to')}")
        shown = [text for key, part in value.items() if (text := _item_summary(str(key), part))]
        return "; ".join(shown[:4])
    if isinstance(value, list):
        return f"{len(value)} items"
    return _one_line(value)


def _item_summary(key: str, value: object) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, list):
        names = [
            str(part.get("name", "")) if isinstance(part, Mapping) else str(part) for part in value
        ]
        return (
            f"{key} {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
            if all(names)
            else f"{len(value)} {key}"
        )
    if isinstance(value, Mapping):
        return f"{key} {{{', '.join(map(str, list(value)[:3]))}}}"
    text = _one_line(value)
    return text if key in PROSE else f"{key} {text}"


def _error_text(error: object) -> str:
    if isinstance(error, Mapping):
        return ": ".join(_one_line(error[key]) for key in ("kind", "message") if error.get(key))
    return _one_line(error)


def _first_text(record: Record, keys: tuple[str, ...]) -> str:
    for key in keys:
        value = record.get(key)
        if isinstance(value, Mapping):
            return _error_text(value) or value_summary(value)
        if value:
            return _one_line(value)
    return ""


def _one_line(value: object) -> str:
    return clean_line(str(value)[:MAX_TEXT_CHARACTERS])


def _first_line(text: str) -> str:
    return next(
        (
            line.strip()
            for line in text[:MAX_TEXT_CHARACTERS].splitlines()
            if line.strip() and not line.startswith("```")
        ),
        "",
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
