"""Progress of a tool loop: its usage so far, and reports of arriving pieces to followers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .client import Usage
from .errors import ModelFailed

MAX_REPLY_CHARACTERS = 4 << 20
SHOWN_CHARACTERS = 200
REPORT_EVERY_S = 0.2
REPORT_EVERY_CHARACTERS = 2000
"""Independent of time, since token limits are checked against reported progress."""
CHARACTERS_PER_TOKEN = 4
"""Estimate for progress; the final count is the endpoint's."""

Progress = Callable[[Mapping[str, object]], None]


@dataclass(slots=True)
class Meter:
    """Usage of a loop so far."""

    model: str
    begin_s: float
    usage: Usage = field(default_factory=Usage)
    turns: int = 0

    def add(self, usage: Usage) -> None:
        self.usage += usage

    def document(self, *, coming: int = 0) -> dict[str, object]:
        """Return the usage as a record's fields. coming: characters of the turn that is still
        arriving.
        """
        return {
            "model": self.model,
            **(self.usage + Usage(output=coming // CHARACTERS_PER_TOKEN)).document(),
            "turns": self.turns,
            "seconds": round(time.monotonic() - self.begin_s, 3),
        }


class ReplyReporter:
    """Reporter of a reply's arriving pieces to followers. It stops a reply that grows without
    end.
    """

    def __init__(self, progress: Progress, meter: Meter) -> None:
        self._progress = progress
        self._meter = meter
        self._line = ""
        self._characters = 0
        self._reported_characters = 0
        self._reported_s = 0.0

    def take(self, piece: str, is_text: bool) -> None:
        """Count a piece, and report the reply's last line and size at intervals."""
        self._characters += len(piece)
        if self._characters > MAX_REPLY_CHARACTERS:
            raise ModelFailed(
                f"{self._meter.model} answered with more than {MAX_REPLY_CHARACTERS} characters in one turn"
            )
        if is_text:
            whole, _, rest = (self._line + piece).rpartition("\n")
            self._line = (rest if rest.strip() else whole.rpartition("\n")[2] + "\n" + rest)[
                -2 * SHOWN_CHARACTERS :
            ]
        now_s = time.monotonic()
        if (
            now_s - self._reported_s < REPORT_EVERY_S
            and self._characters - self._reported_characters < REPORT_EVERY_CHARACTERS
        ):
            return
        self._reported_s, self._reported_characters = now_s, self._characters
        usage = self._meter.document(coming=self._characters)
        shown = {"text": self._line.strip()[-SHOWN_CHARACTERS:]} if self._line.strip() else {}
        self._progress({**shown, "tokens": usage["outputTokens"], "usage": usage})

    def reset(self) -> int:
        """Return the approximate number of tokens that have arrived, and start counting anew."""
        tokens, self._characters, self._reported_characters = (
            self._characters // CHARACTERS_PER_TOKEN,
            0,
            0,
        )
        return tokens
