"""Parser of a program's output by the rules of its row. A value of the wrong type is ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..usage import is_plausible
from .table import EventRule, ProgramRow
from .tool_calls import ProgramCalls
from .values import values_at

MAX_LINE_BYTES = 16 << 20
MAX_BYTES = 512 << 20
MAX_VALUE_CHARACTERS = 1 << 20
TEXTS = ("answer", "session", "why", "text", "tool", "file")
NUMBERS = ("inputTokens", "outputTokens", "cachedTokens", "turns", "cost")
SHOWN = ("text", "tool", "file")
MAX_SHOWN_CHARACTERS = 200


class OutputLimitExceeded(Exception):
    """The program printed more than the limit."""


@dataclass(slots=True, kw_only=True)
class OutputValues:
    """Values of the output so far. noise: lines that are no JSON. ended: the event that ends the
    output was there.
    """

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    failed: bool = False
    ended: bool = False
    noise: int = 0

    @property
    def usage(self) -> dict[str, object]:
        return {
            name: value if name == "cost" else int(value) for name, value in self.numbers.items()
        }


class OutputReader:
    """Parser of one run's standard output as it arrives. progress: called with the displayed values
    of each event.
    """

    def __init__(self, row: ProgramRow, progress: Callable[[Mapping[str, object]], None]) -> None:
        self.values = OutputValues()
        self.calls = ProgramCalls(row)
        self._row = row
        self._progress = progress
        self._buffer = bytearray()
        self._total_bytes = 0

    def __call__(self, data: bytes) -> None:
        """Parse a chunk; OutputLimitExceeded if it is too much."""
        self._total_bytes += len(data)
        if self._total_bytes > MAX_BYTES:
            raise OutputLimitExceeded(f"it printed more than {MAX_BYTES} bytes")
        if self._row.output == "lines":
            *ended, data = data.split(b"\n")
            for line in ended:
                self._take(bytes(self._buffer + line))
                self._buffer.clear()
        self._buffer += data
        if len(self._buffer) > MAX_LINE_BYTES:
            raise OutputLimitExceeded(f"it printed more than {MAX_LINE_BYTES} bytes without an end")

    def finish(self) -> OutputValues:
        """Parse the rest and return all values."""
        if self._row.output == "text":
            self.values.texts["answer"], self.values.ended = (
                self._buffer.decode("utf-8", "backslashreplace"),
                True,
            )
        else:
            self._take(bytes(self._buffer))
        self._buffer.clear()
        return self.values

    def _take(self, data: bytes) -> None:
        if not data.strip():
            return
        event = parse(data) if self._row.output == "lines" else parse_whole(data)
        if event is None:
            self.values.noise += 1
            return
        self.calls.take(event)
        for rule in self._row.read:
            if all(value in values_at(event, path) for path, value in rule.when.items()):
                self._apply(rule, event)

    def _apply(self, rule: EventRule, event: Mapping[str, Any]) -> None:
        values_read = self.values
        values_read.ended = values_read.ended or rule.ends
        values_read.failed = (
            values_read.failed
            or rule.fails is True
            or (isinstance(rule.fails, str) and any(values_at(event, rule.fails)))
        )
        seen: dict[str, str] = {}
        for name, paths in rule.take.items():
            values = [value for path in paths for value in values_at(event, path)]
            if name in TEXTS and (text := text_of(values, first=name == "why")) is not None:
                seen[name] = text
            if name in NUMBERS and (counts := [value for value in values if is_plausible(value)]):
                values_read.numbers[name] = sum(counts)
        values_read.texts.update(seen)
        if shown := {name: shorten(seen[name]) for name in SHOWN if seen.get(name, "").strip()}:
            self.calls.show(shown)
            self._progress(shown)


def text_of(values: list[Any], *, first: bool) -> str | None:
    """Return the last text among *values* (the first, if *first*), within bounds."""
    texts = [value for value in values if isinstance(value, str) and (value.strip() or not first)]
    if not texts:
        return None
    return (
        (texts[0] if first else texts[-1])[: MAX_VALUE_CHARACTERS + 1]
        .encode("utf-8", "backslashreplace")
        .decode()
    )


def parse(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def parse_whole(data: bytes) -> dict[str, Any] | None:
    """Return the one JSON object; programs may print a line or two before it."""
    for match in re.finditer(rb"^\{", data, re.MULTILINE):
        event = parse(data[match.start() :])
        if event is not None:
            return event
    return None


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN_CHARACTERS else f"{line[: MAX_SHOWN_CHARACTERS - 1]}…"
